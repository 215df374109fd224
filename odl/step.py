"""One training step on buffers that stay in place: gather, corrupt, restore, loss, Adam (Sec. 5, Eq. 2).

Level is data: the buffers hold the severities that each image may have, so that one step serves every schedule. On a
GPU the whole step is captured once as a CUDA graph and replayed; `ODL_EAGER=1` selects the same step without a graph.
"""

import copy
import os
import threading

import torch

from odl import data, paper
from odl.evaluate import task_of

CAPTURING = threading.Lock()  # one capture at a time, where several runs share a GPU
WARM_UP = 3  # steps before a capture, in which libraries choose their kernels


class Step:
    """A training step of one run; calling it goes one step on with the images in `index`.

    Buffers, written between steps: `index` (B,) of images in the pack, or of items in the pool of hard mining; `low`
    and `high` (B,) the interval of each image's severity in the task's unit; `generator`. `centred` puts holes in the
    middle. `keep` back-propagates so many images of highest loss, None all. `total` adds up the losses.
    """

    def __init__(self, experiment, network, optimizer, pack, precision=None):
        device, size = pack.offset.device, experiment.batch_size
        self.experiment, self.network, self.optimizer = experiment, network, optimizer
        self.pack, self.precision = pack, precision or experiment.precision
        self.pool = hard_pool(experiment, pack) if experiment.schedule == "hard_mining" else None
        self.index = torch.zeros(size, dtype=torch.long, device=device)
        self.low, self.high = torch.zeros(2, size, device=device)
        self.total = torch.zeros((), device=device)
        self.generator = torch.Generator(device)
        self.centred, self.keep = False, None
        self.capture = pack.pixels.is_cuda and os.environ.get("ODL_EAGER") != "1"  # a graph reads no file
        self.graphs = {}

    def assign(self, counts) -> None:
        """Say how many images of each coming batch belong to each level, (n, N); None: all to a fixated severity."""
        self.lows, self.highs, self.centred = severities(self.experiment, counts, self.index.device)

    def select(self, i: int, index) -> None:
        """Make batch i the next one, of the images in `index` (B,)."""
        self.index.copy_(index)
        for buffer, rows in ((self.low, self.lows), (self.high, self.highs)):
            buffer.copy_(rows[i % len(rows)])

    def __call__(self) -> None:
        if not self.capture:
            return self.run()
        kind = self.keep, self.centred
        if kind not in self.graphs:
            self.graphs[kind] = captured(self)
        self.graphs[kind].replay()

    def run(self) -> None:
        """The step itself."""
        x, y = self.draw()
        x_hat = restore(self.network, y, self.precision)
        loss = ((x_hat - x) ** 2).flatten(1).mean(1)  # (B,)
        if self.keep:
            loss = loss.topk(self.keep).values
        loss = loss.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        average(self.optimizer)
        self.total += loss.detach()

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Clean crops x and corrupted ones y, each (B, channels, 64, 64)."""
        if self.pool is not None:
            return tuple(images[self.index].float() / 127.5 - 1 for images in self.pool)
        task = task_of(self.experiment)
        x = data.crop(self.pack, self.index, self.generator)
        x = data.grey(x, self.experiment.variant) if task.channels == 1 else x
        return x, task.corrupt_between(x, self.low, self.high, self.generator, self.centred)

    def state(self) -> list[torch.Tensor]:
        """Every tensor that a step changes."""
        slots = [slot.values() for slot in self.optimizer.state.values()]
        return [*self.network.parameters(), *self.network.buffers(), *(t for slot in slots for t in slot), self.total]


def severities(experiment, counts, device):
    """Lower and upper severity of every image of n batches, (n, B) each, and whether holes are centred.

    counts: images per level of each batch (n, N); None, as for fixated models, stands for one batch.
    """
    if counts is None:
        value = experiment.severity or paper.TASKS[experiment.task][experiment.schedule.removeprefix("fixated_")]
        bound = torch.full((1, experiment.batch_size), float(value), device=device)
        return bound, bound, True
    counts = torch.as_tensor(counts)
    levels = torch.arange(1, counts.shape[1] + 1).repeat(len(counts)).repeat_interleave(counts.flatten())
    return *task_of(experiment).bounds(levels.view(len(counts), -1).to(device)), False


@torch.no_grad()
def hard_pool(experiment, pack) -> tuple[torch.Tensor, torch.Tensor]:
    """The static pool of hard mining (Sec. 6.3): clean and corrupted crops (pool_images, channels, 64, 64), uint8.

    Item k is a crop of image k mod n; levels take turns over images and over the visits to each. Crop and damage are
    drawn by a generator of the item's own, on the CPU.
    """
    # Paper: 1M corrupted images on disk; here: 8-bit as theirs, in memory, 25 kB an item in colour.
    task, n, device = task_of(experiment), len(pack), pack.offset.device
    pack, generator = pack.to("cpu"), torch.Generator()
    size = (experiment.pool_images, task.channels, data.CROP, data.CROP)
    pool = torch.empty(size, dtype=torch.uint8), torch.empty(size, dtype=torch.uint8)
    for k in range(experiment.pool_images):
        generator.manual_seed(data.seed_of(experiment.seed, "pool", k))
        x = data.crop(pack, torch.tensor([k % n]), generator)
        x = data.grey(x, experiment.variant) if task.channels == 1 else x
        y = task.corrupt(x, (k // n + k % n) % paper.N_LEVELS + 1, generator)
        for images, image in zip(pool, (x, y), strict=True):
            images[k] = ((image[0] + 1) * 127.5).round()
    return tuple(images.to(device) for images in pool)


AVERAGE = 0.999  # what a step leaves of the running average of the weights


@torch.no_grad()
def average(optimizer) -> None:
    """Move the running average of every weight, kept beside Adam's moments; it begins with 0 as they do."""
    slots = [(slot, p) for p, slot in optimizer.state.items()]
    averages = [slot.setdefault("average", torch.zeros_like(p)) for slot, p in slots]
    torch._foreach_lerp_(averages, [p for _, p in slots], 1 - AVERAGE)


@torch.no_grad()
def averaged(network, optimizer):
    """A copy of the network with averaged weights, corrected for their beginning at 0 as Adam's moments are."""
    copied = copy.deepcopy(network)
    for p, own in zip(copied.parameters(), network.parameters(), strict=True):
        slot = optimizer.state[own]
        p.copy_(slot["average"] / (1 - AVERAGE ** slot["step"].item()))
    return copied


@torch.no_grad()
def refresh_batchnorm(network, batches) -> None:
    """Estimate BatchNorm's statistics anew from batches y (B, channels, 64, 64), all of equal weight."""
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean
    network.train()
    for y in batches:
        network(y)
    network.eval()


def restore(network, y, precision: str) -> torch.Tensor:
    """Forward pass in bf16, fp32 or fp64, returned in fp32, or fp64: (B, channels, 64, 64)."""
    if precision == "fp64":
        return network(y.double())
    with torch.autocast(y.device.type, torch.bfloat16, enabled=precision == "bf16"):
        return network(y).float()


def quick_precision(device: str = "cpu") -> str:
    """`bf16` where the device has it natively, else `fp32`: for what is no measurement."""
    if str(device).startswith("cuda"):
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    return "bf16" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "fp32"


def make_deterministic() -> None:
    """Kernels on a GPU that give the same bits at every call, also beside other streams: exact resume needs them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.deterministic = True


def captured(step: Step) -> torch.cuda.CUDAGraph:
    """The step as a CUDA graph. The steps that warm it up leave no trace: weights, Adam and generator are put back."""
    before = {id(t): t.detach().clone() for t in step.state()}
    drawn = step.generator.get_state()
    # torch.cuda.graph would capture on one stream of the process, which another run may have as its own.
    current = torch.cuda.current_stream()
    stream = torch.cuda.Stream() if current == torch.cuda.default_stream() else current
    stream.wait_stream(current)
    with CAPTURING:
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                step.run()
        current.wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(step.generator)
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            step.run()
    with torch.no_grad():
        for t in step.state():  # Adam begins with zeros, in tensors that it makes at its first step
            t.copy_(before[id(t)]) if id(t) in before else t.zero_()
    step.generator.set_state(drawn)
    return graph
