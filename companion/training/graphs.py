"""A training step on a GPU, captured as a CUDA graph and replayed; `ODL_EAGER=1` selects the same step without."""

import os
import threading

import torch

CAPTURING = threading.Lock()  # one capture at a time, where several runs share a GPU
WARM_UP_STEPS = 3  # before a capture, in which libraries choose their kernels
MAX_QUEUED_GRAPHS = 32  # that wait in a GPU at a time


def quickest(step):
    """Return the step of `learn`, or its graphs if the images are on a GPU; no graph reads a disk."""
    return Captured(step) if step.images.pixels.is_cuda and os.environ.get("ODL_EAGER") != "1" else step


class Captured:
    """A step with a CUDA graph for each kind of batch, captured at the first of it; called as the step is.

    A graph reads its batch from, and writes its loss to, tensors that stay where they are.
    """

    def __init__(self, step):
        self.step, self.graphs, self.taken = step, {}, 0

    def __call__(self, *batch) -> torch.Tensor:
        kind = tuple("tensor" if torch.is_tensor(part) else part for part in batch)
        if kind not in self.graphs:
            kept = [part.clone() if torch.is_tensor(part) else part for part in batch]
            self.graphs[kind] = (kept, *captured(self.step, kept))
        kept, graph, loss = self.graphs[kind]
        for mine, given in zip(kept, batch, strict=True):
            if torch.is_tensor(mine):
                mine.copy_(given)
        graph.replay()
        if self.taken % MAX_QUEUED_GRAPHS == 0:
            torch.cuda.current_stream().synchronize()
        self.taken += 1
        return loss


def captured(step, batch) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """Return the step as a CUDA graph, and where its loss will be.

    The steps that warm it up leave no trace: weights, Adam and generator are put back.
    """
    before = {id(t): t.detach().clone() for t in state_of(step)}
    drawn = step.generator.get_state()
    # torch.cuda.graph would capture on one stream of the process, which another run may have as its own.
    current = torch.cuda.current_stream()
    stream = torch.cuda.Stream() if current == torch.cuda.default_stream() else current
    stream.wait_stream(current)
    with CAPTURING:
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_STEPS):
                step(*batch)
        current.wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(step.generator)
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            loss = step(*batch)
    with torch.no_grad():
        for t in state_of(step):  # Adam begins with zeros, in tensors that it makes at its first step
            t.copy_(before[id(t)]) if id(t) in before else t.zero_()
    step.generator.set_state(drawn)
    return graph, loss


def state_of(step) -> list[torch.Tensor]:
    """Return every tensor that a step changes."""
    slots = [slot.values() for slot in step.optimizer.state.values()]
    return [*step.network.parameters(), *step.network.buffers(), *(t for slot in slots for t in slot)]
