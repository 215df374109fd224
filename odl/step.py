"""One training step on buffers that stay in place: gather, corrupt, restore, loss, Adam (Sec. 5, Eq. 2).

Level is data: the buffers hold the severities that each image may have, so that one step serves every schedule. On a
GPU the whole step is captured once as a CUDA graph and replayed; `ODL_EAGER=1` selects the same step without a graph.
"""

import os
import threading

import torch

from odl import data, paper
from odl.evaluate import task_of

CAPTURING = threading.Lock()  # one capture at a time, where several runs share a GPU
WARM_UP = 3  # steps before a capture, in which libraries choose their kernels


class Step:
    """A training step of one run; calling it goes one step on with the images in `index`.

    Buffers, written between steps: `index` (B,) of images in the pack, `low` and `high` (B,) the interval of each
    image's severity in the task's unit, `generator`. `centred` puts holes in the middle. `keep` back-propagates so
    many images of highest loss, None all. `total` adds up the losses.
    """

    def __init__(self, experiment, network, optimizer, pack, precision="fp32"):
        device, size = pack.offset.device, experiment.batch_size
        self.experiment, self.network, self.optimizer = experiment, network, optimizer
        self.pack, self.precision = pack, precision
        self.index = torch.zeros(size, dtype=torch.long, device=device)
        self.low, self.high = torch.zeros(2, size, device=device)
        self.total = torch.zeros((), device=device)
        self.generator = torch.Generator(device)
        self.centred, self.keep = False, None
        self.capture = pack.pixels.is_cuda and os.environ.get("ODL_EAGER") != "1"  # a graph reads no file
        self.graphs = {}

    def assign(self, counts) -> None:
        """Say how many images of the coming batches belong to each level; None: all to a fixated model's severity."""
        low, high, self.centred = severities(self.experiment, counts, self.index.device)
        self.low.copy_(low)
        self.high.copy_(high)

    def __call__(self) -> None:
        if not self.capture:
            return self.run()
        if self.keep not in self.graphs:
            self.graphs[self.keep] = captured(self)
        self.graphs[self.keep].replay()

    def run(self) -> None:
        """The step itself."""
        x, y = self.draw()
        x_hat = restore(self.network, y, self.precision)
        loss = ((x_hat - x) ** 2).flatten(1).mean(1)  # (B,)
        if self.keep:
            loss = loss.topk(min(self.keep, len(loss))).values
        loss = loss.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss.detach()

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Clean crops x and corrupted ones y, each (B, channels, 64, 64)."""
        task = task_of(self.experiment)
        x = data.crop(self.pack, self.index, self.generator)
        x = data.grey(x, self.experiment.variant) if task.channels == 1 else x
        return x, task.corrupt_between(x, self.low, self.high, self.generator, self.centred)

    def state(self) -> list[torch.Tensor]:
        """Every tensor that a step changes."""
        slots = [slot.values() for slot in self.optimizer.state.values()]
        return [*self.network.parameters(), *self.network.buffers(), *(t for slot in slots for t in slot), self.total]


def severities(experiment, counts, device):
    """Lower and upper severity (B,) of every image of a batch, and whether holes are centred."""
    if counts is None:
        value = experiment.severity or paper.TASKS[experiment.task][experiment.schedule.removeprefix("fixated_")]
        bound = torch.full((experiment.batch_size,), float(value), device=device)
        return bound, bound, True
    levels = torch.arange(1, len(counts) + 1, device=device).repeat_interleave(torch.tensor(counts, device=device))
    return *task_of(experiment).bounds(levels), False


def restore(network, y, precision: str) -> torch.Tensor:
    """Forward pass in bf16 or fp32, answered in fp32: (B, channels, 64, 64)."""
    with torch.autocast(y.device.type, torch.bfloat16, enabled=precision == "bf16"):
        return network(y).float()


def make_deterministic() -> None:
    """Kernels on a GPU that give the same bits at every call, also beside other streams: exact resume needs them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.deterministic = True


def captured(step: Step) -> torch.cuda.CUDAGraph:
    """The step as a CUDA graph. The steps that warm it up leave no trace: weights, Adam and generator are put back."""
    before = {id(t): t.detach().clone() for t in step.state()}
    drawn = step.generator.get_state()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with CAPTURING:
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                step.run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(step.generator)
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step.run()
    with torch.no_grad():
        for t in step.state():  # Adam begins with zeros, in tensors that it makes at its first step
            t.copy_(before[id(t)]) if id(t) in before else t.zero_()
    step.generator.set_state(drawn)
    return graph
