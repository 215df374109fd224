"""A trained network as an ONNX model, for the page in which readers run it (needs the packages onnx and onnxscript)."""

from functools import cache

import onnx
import torch
from torch.func import functional_call

from odl.crops import CROP
from odl.network import EncoderDecoder, ResidualUNet


class Halved(torch.nn.Module):
    """A network whose weights are stored in half precision, as they ship, and used in single."""

    def __init__(self, network):
        super().__init__()
        self.network = network.half()

    def forward(self, y):
        weights = {name: t.float() for name, t in self.network.state_dict().items() if t.is_floating_point()}
        return functional_call(self.network, weights, y)


def to_onnx(network: EncoderDecoder | ResidualUNet, side: int = CROP) -> bytes:
    """Return an ONNX model y -> x_hat, (N, channels, side, side) in [-1, 1]; of a U-Net one image at a time."""
    model, weights = onnx.ModelProto(), network.state_dict()
    first = network.head if isinstance(network, ResidualUNet) else network.encoder[0]
    model.CopyFrom(graph_of(type(network), network.channels, first.out_channels, side))
    for stored in model.graph.initializer:
        if (name := stored.name.removeprefix("network.")) in weights:
            stored.CopyFrom(onnx.numpy_helper.from_array(weights[name].half().numpy(), stored.name))
    return model.SerializeToString()


@cache
def graph_of(kind: type, channels: int, width: int, side: int) -> onnx.ModelProto:
    """Return the model with initial weights: its graph is the same for any, and an export takes seconds."""
    many = issubclass(kind, EncoderDecoder)
    y = torch.zeros(1 + many, channels, side, side)
    names = {"input_names": ["y"], "output_names": ["x_hat"], "dynamic_shapes": ({0: "N"} if many else {},)}
    # BatchNorm stays apart: the runtime folds it when it loads the model, and folded halves would be less exact.
    how = {"dynamo": True, "optimize": False, "verbose": False}
    model = torch.onnx.export(Halved(kind(channels, width)).eval(), (y,), **names, **how).model_proto
    for part in (model.graph, *model.graph.node, *model.graph.value_info):
        part.ClearField("metadata_props")  # which line of which file a node comes from
    return model
