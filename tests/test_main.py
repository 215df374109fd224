"""The command line: what a user types, and what a user gets wrong."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageCms

from odl import pretrained, results
from odl.__main__ import main
from odl.experiment import Experiment
from odl.network import EncoderDecoder, initialize

SMOKE = ["--profile", "smoke"]


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def weights(root):
    """Untrained weights where `restore` looks for the on-demand networks first."""
    import torch
    from safetensors.torch import save_file

    for task, channels in (("inpaint", 3), ("interpolate", 3), ("deblur", 3), ("denoise", 1)):
        experiment = Experiment.of(task, "bsds500", "on_demand", profile="reference", **pretrained.LONG["reference"])
        folder = root / "runs" / experiment.run_id
        folder.mkdir(parents=True)
        network = initialize(EncoderDecoder(channels, experiment.width), torch.Generator().manual_seed(0))
        save_file(network.state_dict(), folder / "weights.safetensors")


def test_train_then_evaluate_then_list(capsys):
    assert main(["train", "--task", "deblur", *SMOKE]) == 0
    printed = capsys.readouterr().out
    path = results.path_of(Experiment.of("deblur", profile="smoke"))
    assert str(path) in printed and json.loads(path.read_text())["experiment"]["task"] == "deblur"
    assert main(["evaluate", "--task", "deblur", *SMOKE]) == 0
    assert "PSNR (dB)" in capsys.readouterr().out
    assert main(["results"]) == 0
    assert "on_demand-seed0" in capsys.readouterr().out


def test_numbers_are_overridden_by_name(root):
    assert main(["train", *SMOKE, "--set", "epochs=1", "--set", "learning_rate=1e-3"]) == 0
    assert [path.stem for path in root.glob("data/results/*/*/*/*.json")] == [
        "on_demand-seed0-epochs=1-learning_rate=0.001"
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "--task", "inpant"], "nearest: 'inpaint'"),
        (["train", "--schedule", "ondemand"], "nearest: 'on_demand'"),
        (["train", "--dataset", "nowhere"], "dataset='nowhere'"),
        (["train", "--profile", "3"], "profile='3'"),
        (["train", "--set", "epoch=3"], "nearest: 'epochs'"),
        (["train", "--set", "epochs=three"], "epochs='three'"),
        (["train", "--set", "epochs=0"], "nearest: 1"),
        (["train", "--set", "learning_rate=NaN"], "learning_rate=nan"),
        (["train", "--seed", "-1"], "seed=-1"),
        (["train", "--device", "gpu"], "device='gpu'"),
        (["evaluate", "--task", "deblur"], "python -m odl train --task deblur"),
        (["data", "prepare", "celebb"], "nearest: 'celeba'"),
        (["data", "prepare", "celeba", "--source", "nowhere"], "nowhere"),
        (["restore", "--task", "denoise", "nowhere.png", "out.png"], "nowhere.png"),
        (["restore", "--task", "inpaint", "in.png", "out.png"], "--mask"),
        (["restore", "--task", "denoise", "in.png", "out.xyz"], "'.png'"),
        (["restore", "--task", "denoise", "--stride", "0", "in.png", "out.png"], "stride"),
        (["restore", "--task", "denoise", "text.png", "out.png"], "text.png"),
        (["restore", "--task", "denoise", "--mask", "in.png", "in.png", "out.png"], "--mask"),
        (["restore", "--task", "denoise", "in.png", "in.png"], "--overwrite"),
        (["restore", "--task", "denoise", "in.png", "."], "--overwrite"),
        (["restore", "--task", "denoise", "--device", "gpu", "in.png", "out.png"], "device='gpu'"),
        (["restore", "--task", "inpaint", "--mask", "in.png", "in.png", "out.png"], "no pixel is missing"),
        (["restore", "--task", "inpaint", "--mask", "white.png", "in.png", "out.png"], "every pixel is missing"),
        (["restore", "--task", "inpaint", "--mask", "grey.png", "in.png", "out.png"], "black and white"),
        (["restore", "--task", "interpolate", "in.png", "out.png"], "--mask"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, expected, root, capsys):
    Image.fromarray(np.zeros((70, 70), np.uint8)).save(root / "in.png")
    Image.new("L", (70, 70), 255).save(root / "white.png")
    Image.new("L", (70, 70), 128).save(root / "grey.png")
    (root / "text.png").write_text("not an image")
    before = sorted(root.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ") and expected in error
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("arguments", [[], ["tran"], ["train", "--sed", "1"], ["train", "--seed", "one"]])
def test_an_unknown_option_is_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2 and capsys.readouterr().err.count("\n") == 1


def test_restore_keeps_what_a_camera_wrote(root, weights):
    exif = Image.Exif()
    exif[274], exif[271] = 6, "Camera"  # to be turned by 90°
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.effect_noise((90, 70), 40).convert("RGB").save(root / "in.jpg", exif=exif, icc_profile=profile, quality=71)
    assert main(["restore", "--task", "deblur", "--stride", "32", "in.jpg", "out.jpg"]) == 0
    before, after = Image.open(root / "in.jpg"), Image.open(root / "out.jpg")
    assert after.size == (70, 90) and dict(after.getexif()) == {271: "Camera"}
    assert after.info["icc_profile"] == profile and after.quantization == before.quantization


def test_a_folder_gives_a_folder_and_names_what_failed(root, weights, capsys):
    for name in ("a.png", "deeper/b.jpg"):
        (root / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((70, 70), 40).save(root / "in" / name)
    (root / "in/c.png").write_text("not an image")
    arguments = ["restore", "--task", "denoise", "--stride", "32", "in", "in/out"]
    for _ in range(2):  # what was restored is not restored again
        assert main(arguments) == 1
        assert "c.png: not a readable image" in capsys.readouterr().err
        found = {path.relative_to(root / "in/out").as_posix() for path in root.glob("in/out/**/*.*")}
        assert found == {"a.png", "deeper/b.jpg"}


def test_a_misspelt_task_is_refused_without_torch(root):
    code = "import sys; sys.modules['torch'] = None; from odl.__main__ import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "restore", "--task", "debler", "in.png", "out.png"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "nearest: 'deblur'" in done.stderr


def test_a_mask_of_another_size_is_refused(root, weights, capsys):
    Image.new("RGB", (80, 80)).save(root / "in.png")
    Image.new("L", (81, 80)).save(root / "mask.png")
    assert main(["restore", "--task", "inpaint", "--mask", "mask.png", "in.png", "out.png"]) == 2
    assert "81×80" in capsys.readouterr().err and not (root / "out.png").exists()


def test_the_module_runs_without_the_book_s_packages(root):
    """A GPU machine has torch, pandas and scikit-image, and neither papermill nor jupyter-book."""
    code = """
import sys
for name in ("papermill", "jupyter_book", "bm3d", "nbformat", "IPython", "pooch"):
    sys.modules[name] = None
from odl.__main__ import main
sys.exit(main(["train", "--profile", "smoke"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, env=os.environ)
    assert done.returncode == 0, done.stderr
