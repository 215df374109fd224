"""What differs between machines: memory that is kept, and fp32 where there is no bf16."""

import pytest
import torch
from conftest import refused
from torch import nn

from companion.training import device, results
from companion.training.device import check_device
from odl import device as arithmetic_on
from odl.experiment import Experiment


def test_a_torch_without_onednn_is_not_asked_what_it_knows(monkeypatch):
    """As on a Mac: the namespace is empty there."""
    monkeypatch.setattr(device.torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(device.torch.ops, "mkldnn", object())
    assert arithmetic_on.quick_precision() == "fp32"


@pytest.fixture
def machine(monkeypatch):
    """`machine(gpu, fault)` has a GPU, as far as can be asked, or none; a first operation there has the fault."""

    def has(gpu, fault=""):
        def ones(size, device):
            if fault:
                raise RuntimeError(fault)
            return torch.tensor([1.0])

        monkeypatch.setattr(device.torch.cuda, "is_available", lambda: gpu)
        monkeypatch.setattr(device.torch, "ones", ones)
        device.gpu.cache_clear()

    yield has
    device.gpu.cache_clear()


def test_a_gpu_that_this_pytorch_has_no_kernels_for_gives_way_to_the_cpu(machine, capsys):
    machine(True, "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be …")
    assert [check_device("auto"), check_device("auto")] == ["cpu", "cpu"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot use this GPU (CUDA error: no kernel" in said and "the CPU is used" in said
    refused(lambda: check_device("cuda"), "cannot use this GPU", "nearest: 'cpu'")
    assert check_device("cpu") == "cpu"
    for gpu, found in ((True, "cuda"), (False, "cpu")):
        machine(gpu)
        assert check_device("auto") == check_device(found) == found and capsys.readouterr().err == ""
    refused(lambda: check_device("cuda"), "not available on this machine; nearest: 'cpu'")


@pytest.mark.parametrize(("capability", "precision"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")])
def test_a_gpu_without_bf16_is_told_by_its_generation(monkeypatch, capability, precision):
    """PyTorch's own question says yes to a T4, which has to emulate it."""
    monkeypatch.setattr(device.torch.cuda, "get_device_capability", lambda: capability)
    assert arithmetic_on.quick_precision("cuda:0") == precision


@pytest.mark.parametrize(("precision", "native"), [("bf16", True), ("bf16", False), ("fp32", True), ("fp64", False)])
def test_a_result_says_its_arithmetic(demo, monkeypatch, precision, native):
    monkeypatch.setattr(arithmetic_on, "quick_precision", lambda *_: "bf16" if native else "fp32")
    origin = results.provenance(Experiment.of(dataset="demo", precision=precision), "cpu")
    assert origin["arithmetic"] == ("fp32" if precision == "bf16" and not native else precision)
    assert origin["processor"]


@pytest.mark.parametrize("native", [True, False])
def test_bf16_is_computed_only_where_it_is_native(monkeypatch, native):
    monkeypatch.setattr(arithmetic_on, "quick_precision", lambda *_: "bf16" if native else "fp32")
    network, y = nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    found, exact = arithmetic_on.forward(network, y, "bf16"), network(y)
    assert torch.equal(found, exact) != native and found.dtype == torch.float32
    assert torch.allclose(found, exact, atol=0.02)
