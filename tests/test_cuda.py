"""The path of a training step on a GPU, as far as a machine without one can walk it: devices, shapes and waits.

Tensors here have a device and a shape and no content. What mixes devices raises, what asks for a number, which on a GPU
waits for it, raises, and what copies between a GPU and the host is noted: a CUDA graph can hold none of these.
The last tests need a GPU: a captured step equals the plain one, and runs side by side the same runs alone.
"""

from dataclasses import dataclass
from functools import partial

import pytest
import torch
from test_sweep import left_by
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from companion.disk import files
from companion.training import graphs, results
from odl import corruptions, device, paper
from odl.crops import CROP, Pack, crop, grey
from odl.experiment import Experiment
from odl.network import EncoderDecoder

CUDA = torch.device("cuda", 0)
BATCH = 4
EVERY = [*corruptions.TASKS.values()]


@dataclass
class Generator:
    """A generator's place: a real one on a GPU needs a driver."""

    device: torch.device = CUDA


class Copies(TorchDispatchMode):
    """`with` it, every copy between devices goes into `seen`, as (from, to)."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        if operation in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default):
            source = args[-1] if operation is torch.ops.aten.copy_.default else args[0]
            if source.device != found.device:
                self.seen.append((source.device.type, found.device.type))
        return found


def drawn(draw, *size, generator, **how):
    return draw(*size, **how)


@pytest.fixture
def cuda(monkeypatch):
    """A machine whose GPU has everything but numbers."""
    for draw in (torch.rand, torch.randn):
        monkeypatch.setattr(torch, draw.__name__, partial(drawn, draw))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (8, 0))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)  # a step of a graph is not looked at
    caches = device.constant, corruptions.border  # of tensors that are made once on a device
    for cache in caches:
        cache.cache_clear()
    with FakeTensorMode():
        yield
    for cache in caches:
        cache.cache_clear()


def step(task, network, pack, precision):
    """What a training step does up to its loss, whose gradient needs a driver: (B,)."""
    x = crop(pack, torch.zeros(BATCH, dtype=torch.long, device=CUDA), Generator())
    x = grey(x) if task.channels == 1 else x
    low, high = torch.zeros(2, BATCH, device=CUDA)
    y = task.corrupt_between(x, low, high, Generator())
    x_hat = device.forward(network, y, precision)
    assert x.shape == y.shape == x_hat.shape == (BATCH, task.channels, CROP, CROP)
    return ((x_hat - x) ** 2).flatten(1).mean(1)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("task", EVERY, ids=lambda task: f"{task.name}-{task.draw.__name__}")
@pytest.mark.filterwarnings("ignore:CUDA is not available")  # says autocast, where no driver is
def test_a_step_stays_on_the_gpu(task, precision, cuda):
    """From the second step on nothing crosses to the host or back: what is constant was copied in the first."""
    with CUDA:
        network = EncoderDecoder(task.channels, 8)
    index = torch.zeros(3, 3, dtype=torch.long, device=CUDA)
    pack = Pack(torch.zeros(3 * 100 * 120 * 3, dtype=torch.uint8, device=CUDA), *index, ("0", "1", "2"), "")
    step(task, network, pack, precision)
    with Copies() as copies:
        loss = step(task, network, pack, precision)
        assert loss.device == CUDA and copies.seen == []
        loss.cpu()
    assert copies.seen == [("cuda", "cpu")]  # it would have been noticed


ON_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
KINDS_OF_STEP = ("on_demand", "hard_mining", "group_dro")  # a batch, its worst images, weighted losses


def runs_of(task: str) -> list[Experiment]:
    """Three epochs each, of which hard mining warms up in the first and losses are weighted from the second on."""
    numbers = {"profile": "smoke", "precision": "bf16", "epochs": 3, "iterations": 25, "batch_size": 20}
    return [Experiment.of(task, "demo", schedule, **numbers) for schedule in KINDS_OF_STEP]


def weights_of(experiment: Experiment) -> bytes:
    return (files.runs() / experiment.run_id / "weights.safetensors").read_bytes()


@ON_A_GPU
@pytest.mark.parametrize("task", paper.TASKS)
def test_captured_steps_equal_plain_ones(task, demo, elsewhere, monkeypatch):
    """Losses, scores and weights, bit for bit."""
    captures, captured = [], graphs.captured
    monkeypatch.setattr(graphs, "captured", lambda *given: captures.append(given) or captured(*given))

    def left():
        return [(results.train(experiment, "cuda").history, weights_of(experiment)) for experiment in runs_of(task)]

    by_graphs, made = left(), len(captures)
    monkeypatch.setenv("ODL_EAGER", "1")
    with elsewhere():
        assert by_graphs == left()
    assert 0 < made == len(captures)


@ON_A_GPU
@pytest.mark.parametrize("task", paper.TASKS)
def test_runs_side_by_side_equal_the_same_runs_alone(task, demo, elsewhere):
    beside = left_by(runs_of(task), "cuda")
    with elsewhere():
        assert beside == left_by(runs_of(task), "cuda", workers=1)
