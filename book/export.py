"""A trained network as an ONNX model, for the page in which readers run it (needs the packages onnx and onnxscript)."""

from functools import cache

import onnx
import torch
from torch.func import functional_call

from odl.crops import CROP
from odl.network import EncoderDecoder


class Halved(torch.nn.Module):
    """A network whose weights are stored in half precision, as they ship, and used in single."""

    def __init__(self, network):
        super().__init__()
        self.network = network.half()

    def forward(self, y):
        weights = {name: t.float() for name, t in self.network.state_dict().items() if t.is_floating_point()}
        return functional_call(self.network, weights, y)


def to_onnx(network: EncoderDecoder) -> bytes:
    """A model y -> x_hat, (N, channels, 64, 64) in [-1, 1]."""
    model, weights = onnx.ModelProto(), network.state_dict()
    model.CopyFrom(graph_of(network.encoder[0].in_channels, network.encoder[0].out_channels))
    for stored in model.graph.initializer:
        value = weights[stored.name.removeprefix("network.")].half()
        stored.CopyFrom(onnx.numpy_helper.from_array(value.numpy(), stored.name))
    return model.SerializeToString()


@cache
def graph_of(channels: int, width: int) -> onnx.ModelProto:
    """The same for any weights, because an export takes seconds."""
    y = torch.zeros(2, channels, CROP, CROP)
    names = {"input_names": ["y"], "output_names": ["x_hat"], "dynamic_shapes": ({0: "N"},)}
    # BatchNorm stays apart: the runtime folds it when it loads the model, and folded halves would be less exact.
    how = {"dynamo": True, "optimize": False, "verbose": False}
    model = torch.onnx.export(Halved(EncoderDecoder(channels, width)).eval(), (y,), **names, **how).model_proto
    for part in (model.graph, *model.graph.node, *model.graph.value_info):
        part.ClearField("metadata_props")  # which line of which file a node comes from
    return model
