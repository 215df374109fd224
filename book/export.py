"""A trained network as an ONNX model, for the page in which readers run it (needs the package onnx)."""

import copy

import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from odl.crops import CROP
from odl.network import ChannelwiseLinear, EncoderDecoder

OPSET, IR_VERSION = 17, 8


def to_onnx(network: EncoderDecoder) -> bytes:
    """A model y -> x_hat, (N, channels, 64, 64) in [-1, 1], with the weights in half precision, as they ship.

    BatchNorm stays apart: the runtime folds it when it loads the model, and folded halves would be less exact.
    """
    network, nodes, weights, name = copy.deepcopy(network).half().eval(), [], {}, "y"
    for i, layer in enumerate([*network.encoder, network.bottleneck, *network.decoder]):
        made, tensors = EMIT[type(layer)](layer, name, f"x{i}")
        nodes += [helper.make_node("Cast", [f"{key}.half"], [key], to=TensorProto.FLOAT) for key in tensors] + made
        weights |= tensors
        name = f"x{i}"
    nodes[-1].output[0] = "x_hat"
    shape = ["N", network.encoder[0].in_channels, CROP, CROP]
    ends = [[helper.make_tensor_value_info(end, TensorProto.FLOAT, shape)] for end in ("y", "x_hat")]
    stored = [numpy_helper.from_array(t.detach().numpy(), f"{key}.half") for key, t in weights.items()]
    graph = helper.make_graph(nodes, "odl", *ends, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


# Layers: (layer, name of the input, name of the output) -> (nodes, weights by name)


def convolution(layer, x, out):
    op = "ConvTranspose" if isinstance(layer, nn.ConvTranspose2d) else "Conv"
    shape = {"kernel_shape": layer.kernel_size, "strides": layer.stride, "pads": layer.padding * 2}
    return [helper.make_node(op, [x, f"{out}.weight"], [out], **shape)], {f"{out}.weight": layer.weight}


def batch_norm(layer, x, out):
    parts = {"scale": layer.weight, "B": layer.bias, "mean": layer.running_mean, "var": layer.running_var}
    weights = {f"{out}.{part}": value for part, value in parts.items()}
    return [helper.make_node("BatchNormalization", [x, *weights], [out], epsilon=layer.eps)], weights


def channelwise(layer, x, out):
    side = int(layer.weight.shape[-1] ** 0.5)
    weights = {f"{out}.weight": layer.weight.transpose(1, 2), f"{out}.bias": layer.bias.unsqueeze(1)}
    nodes = [
        helper.make_node("Constant", [], [f"{out}.flat"], value_ints=[0, 0, 1, -1]),  # 0 keeps a dimension
        helper.make_node("Constant", [], [f"{out}.square"], value_ints=[0, 0, side, side]),
        helper.make_node("Reshape", [x, f"{out}.flat"], [f"{out}.a"]),  # (N, C, 1, side²)
        helper.make_node("MatMul", [f"{out}.a", f"{out}.weight"], [f"{out}.b"]),
        helper.make_node("Add", [f"{out}.b", f"{out}.bias"], [f"{out}.c"]),
        helper.make_node("Reshape", [f"{out}.c", f"{out}.square"], [out]),  # (N, C, side, side)
    ]
    return nodes, weights


def activation(layer, x, out):
    slope = {"alpha": layer.negative_slope} if isinstance(layer, nn.LeakyReLU) else {}
    op = {nn.LeakyReLU: "LeakyRelu", nn.ReLU: "Relu", nn.Tanh: "Tanh"}[type(layer)]
    return [helper.make_node(op, [x], [out], **slope)], {}


EMIT = {nn.Conv2d: convolution, nn.ConvTranspose2d: convolution, nn.BatchNorm2d: batch_norm}
EMIT |= {ChannelwiseLinear: channelwise} | dict.fromkeys((nn.LeakyReLU, nn.ReLU, nn.Tanh), activation)
