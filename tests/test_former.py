"""What results were measured by and what they would be measured by today give the same numbers."""

import ast
from pathlib import Path

import pytest
import torch

from odl import corruptions, former
from odl.corruptions import TASKS
from odl.former import corruptions as former_corruptions

APPLIED = {"interpolate": "delete_pixels", "deblur": "blur", "denoise": "add_noise"}
ROUNDING = {"blur": 1e-6}  # the same sums of products, by other kernels; the rest is equal bit for bit


def defined(module) -> list[str]:
    return [n.name for n in ast.parse(Path(module.__file__).read_text()).body if isinstance(n, ast.FunctionDef)]


def test_only_what_is_compared_here_counts_as_the_same():
    modules = [path.stem for path in Path(former.__file__).parent.glob("*.py") if path.stem != "__init__"]
    assert modules == ["corruptions"] and sorted(defined(former_corruptions)) == sorted(APPLIED.values())


@pytest.mark.parametrize("shape", [(10, 64, 64), (3, 63, 65), (1, 480, 321)])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("task", APPLIED)
def test_the_numbers_are_the_same(task, layout, shape):
    if task == "deblur" and shape[1] != shape[2]:
        shape = (shape[0], shape[2], shape[2])  # blurred crops are square
    n, height, width = shape
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(n, TASKS[task].channels, height, width, generator=generator) - 1
    x = x.contiguous(memory_format=torch.channels_last) if layout == "channels_last" else x
    low, high = TASKS[task].bounds(torch.arange(n) % 6 + 1)
    severity = TASKS[task].draw(low, high, width, generator)
    name, kept = APPLIED[task], x.clone()
    first, second = (torch.Generator().manual_seed(1) for _ in range(2))
    before = getattr(former_corruptions, name)(x, severity, first)
    after = getattr(corruptions, name)(x, severity, second)
    torch.testing.assert_close(after, before, rtol=0, atol=ROUNDING.get(name, 0))
    assert torch.equal(x, kept) and torch.equal(first.get_state(), second.get_state())


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (15,), (16,), (3, 5), (100, 1, 64, 64)])
def test_two_numbers_from_each_word_are_those_drawn_one_by_one(shape):
    first, second = (torch.Generator().manual_seed(2) for _ in range(2))
    for _ in range(3):
        assert torch.equal(corruptions.uniform_pixels(shape, first), torch.rand(shape, generator=second))
    assert torch.equal(first.get_state(), second.get_state())
