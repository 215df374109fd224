"""Algorithm 1: what is drawn, what is back-propagated, and exact resume after any kill."""

import copy
import io
import math
import os
import random
import signal
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
import torch
from skimage import metrics

from odl import data, paper, paths, train
from odl.corruptions import TASKS
from odl.experiment import Experiment
from odl.schedules import SCHEDULES
from odl.step import Step, severities
from odl.train import TrainingError
from tests.faults.campaign import PROCESSES
from tests.faults.training import poisoned

TINY = {"profile": "smoke", "width": 8, "epochs": 5, "iterations": 2, "batch_size": 20, "validation_images": 4}


def tiny(schedule="on_demand", task="interpolate", **numbers):
    return Experiment.of(task, schedule=schedule, **(TINY | numbers))


def state_of(experiment):
    """Everything a finished run left: weights, Adam's state and history."""
    state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
    assert len(state["history"]) == experiment.epochs
    return state


def assert_same(a, b):
    """Equal bit for bit, through all nesting."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        [assert_same(a[key], b[key]) for key in a]
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        [assert_same(*pair) for pair in zip(a, b, strict=True)]
    else:
        assert a == b


@pytest.fixture
def elsewhere(demo, demo_pack, tmp_path, monkeypatch):
    """Run something in another root that has the demo pack too."""

    def run(what, *arguments):
        with monkeypatch.context() as patch:
            patch.setenv("ODL_ROOT", str(tmp_path / "elsewhere"))
            link = paths.root() / "data/demo" / demo_pack.name
            if not link.exists():
                link.parent.mkdir(parents=True)
                link.symlink_to(demo_pack)
            return what(*arguments)

    return run


def uninterrupted(experiment, precision="fp32"):
    train.train(experiment, "cpu", precision)
    return state_of(experiment)


# Exact resume


def in_a_child(root, experiment, share, death):
    """Train in a process of its own; `death` is (name of a function of os, count): killed when it is called."""
    os.environ["ODL_ROOT"] = root
    torch.set_num_threads(1)
    train.CHECKPOINT_SECONDS = 0
    if death:
        name, count, when = death
        original, calls = getattr(os, name), []

        def deadly(*arguments):
            calls.append(arguments)
            if len(calls) == count and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            original(*arguments)
            if len(calls) == count:
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, name, deadly)

    def progress(done):
        share.value = done

    train.train(experiment, "cpu", "fp32", progress)


def start(experiment, death=None):
    share = PROCESSES.Value("d", 0.0, lock=False)
    child = PROCESSES.Process(target=in_a_child, args=(str(paths.root()), experiment, share, death))
    child.start()
    return child, share


def kill_when(child, share, done, delay):
    """kill -9 once that share of training is done and some seconds have passed, or let the child end."""
    while child.is_alive() and share.value < done:
        time.sleep(0.002)
    time.sleep(delay)
    if child.is_alive():
        child.kill()
    child.join(200)
    assert child.exitcode is not None


# The second save moves the checkpoint aside (replace 2), writes (fsync 2) and renames (replace 3).
DEATHS = [
    ("replace", 2, "before"),
    ("replace", 2, "after"),
    ("fsync", 2, "after"),
    ("replace", 3, "after"),
    ("fsync", 1, "before"),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_run_that_was_killed_ends_as_if_it_was_not(schedule, demo, elsewhere):
    """kill -9 inside a save, and twice at random times; weights, Adam's state and history are bit for bit the same."""
    number = list(SCHEDULES).index(schedule)
    experiment = tiny(schedule, task=list(TASKS)[number % 4])
    child, share = start(experiment, DEATHS[number % len(DEATHS)])
    child.join(200)
    assert child.exitcode == -signal.SIGKILL
    chance = random.Random(schedule)
    for _ in range(2):
        kill_when(*start(experiment), chance.uniform(0.1, 0.95), chance.uniform(0, 0.03))
    assert_same(uninterrupted(experiment), elsewhere(uninterrupted, experiment))


def test_a_run_killed_every_time_still_ends(demo, elsewhere):
    """Killed at every call of fsync and replace in turn, each time by a new process."""
    experiment = tiny(epochs=3)
    for count in range(1, 4):
        for death in (("replace", count, "before"), ("fsync", count, "before"), ("replace", count, "after")):
            child, _ = start(experiment, death)
            child.join(200)
            assert child.exitcode in (0, -signal.SIGKILL)
    assert_same(uninterrupted(experiment), elsewhere(uninterrupted, experiment))


def test_ctrl_c_saves(demo, elsewhere):
    """An interrupt between the checkpoints of every minute keeps all whole epochs."""
    experiment = tiny(epochs=4)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background

    def progress(done):
        if done > 0.6:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train.train(experiment, "cpu", "fp32", progress)
    state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
    assert len(state["history"]) == 2
    assert_same(uninterrupted(experiment), elsewhere(uninterrupted, experiment))


def command(root, arguments):
    os.environ["ODL_ROOT"] = root
    torch.set_num_threads(1)
    train.CHECKPOINT_SECONDS = 0
    from odl.__main__ import main

    sys.exit(main(arguments))


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_line_ends_with_the_status_of_its_signal(demo, sign, status):
    numbers = [f"--set={name}={value}" for name, value in (TINY | {"epochs": 10_000}).items() if name != "profile"]
    experiment = tiny(epochs=10_000, task="inpaint")
    child = PROCESSES.Process(target=command, args=(str(paths.root()), ["train", "--profile", "smoke", *numbers]))
    child.start()
    checkpoint = paths.runs() / experiment.run_id / "checkpoint.pt"
    while child.is_alive() and not checkpoint.exists():
        time.sleep(0.01)
    os.kill(child.pid, sign)
    child.join(200)
    assert child.exitcode == status and train.load_checkpoint(checkpoint.parent, experiment)


def interrupted(experiment, done, precision="fp32", error=KeyboardInterrupt):
    """Train until that share is done, with a checkpoint every epoch."""

    def progress(share):
        if share > done:
            raise error

    with pytest.MonkeyPatch.context() as patch, pytest.raises(error):
        patch.setattr(train, "CHECKPOINT_SECONDS", 0)
        train.train(experiment, "cpu", precision, progress)
    return paths.runs() / experiment.run_id


def test_a_resumed_run_keeps_its_precision(demo, elsewhere):
    experiment = tiny(epochs=2)
    interrupted(experiment, 0.6, "bf16")
    resumed, straight = uninterrupted(experiment, "fp32"), elsewhere(uninterrupted, experiment, "bf16")
    assert_same(resumed, straight)
    assert straight["precision"] == "bf16"


def test_a_checkpoint_of_another_device_is_resumed_with_this_ones_optimizer(demo, elsewhere):
    experiment = tiny(epochs=3)
    folder = interrupted(experiment, 0.5)
    state = train.load_checkpoint(folder, experiment)
    for group in state["optimizer"]["param_groups"]:
        group["capturable"] = True  # as on a GPU
    payload = io.BytesIO()
    torch.save(state, payload)
    train.save_checkpoint(folder, {"payload": payload.getvalue()})
    assert_same(uninterrupted(experiment), elsewhere(uninterrupted, experiment))


def test_a_finished_run_is_not_trained_again(demo):
    experiment = tiny(epochs=1)
    _, history = train.train(experiment, "cpu", "fp32")
    _, again = train.train(experiment, "cpu", "fp32", lambda _: pytest.fail("trained again"))
    assert history == again


# Damaged checkpoints


def flipped(content, chance):
    content = bytearray(content)
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def truncated(content, chance):
    return content[: chance.randrange(len(content))]


@pytest.mark.parametrize("damage", [flipped, truncated])
def test_damage_is_always_detected_and_the_previous_checkpoint_used(demo, elsewhere, damage, capsys):
    experiment, chance = tiny(epochs=4), random.Random(0)
    folder = interrupted(experiment, 0.8)
    checkpoint, content = folder / "checkpoint.pt", (folder / "checkpoint.pt").read_bytes()
    assert len(train.load_checkpoint(folder, experiment)["history"]) == 3
    for _ in range(30):
        checkpoint.write_bytes(damage(content, chance))
        state = train.load_checkpoint(folder, experiment)
        assert len(state["history"]) == 2 and f"{checkpoint}: damaged" in capsys.readouterr().out
    assert_same(uninterrupted(experiment), elsewhere(uninterrupted, experiment))


def test_with_both_checkpoints_damaged_training_begins_again(demo, elsewhere, capsys):
    experiment = tiny(epochs=3)
    folder = interrupted(experiment, 0.8)
    for name in ("checkpoint.pt", "previous.pt"):
        (folder / name).write_bytes(b"")
    resumed = uninterrupted(experiment)
    assert capsys.readouterr().out.count("damaged") == 2
    assert_same(resumed, elsewhere(uninterrupted, experiment))


def test_a_checkpoint_of_other_numbers_or_of_another_protocol_is_not_resumed(demo, monkeypatch):
    experiment, other = tiny(), tiny(learning_rate=1e-4)
    folder = interrupted(experiment, 0.8)
    assert train.load_checkpoint(folder, experiment) and train.load_checkpoint(folder, other) is None
    monkeypatch.setattr(train, "PROTOCOL", train.PROTOCOL + 1)
    assert train.load_checkpoint(folder, experiment) is None


# Numbers that are not finite


@pytest.mark.parametrize("place", ["x", "y", "weight", "psnr"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_not_finite_stops_the_run(demo, place, value):
    """One line, and the last checkpoint is of the epoch before."""
    experiment = tiny(epochs=3)
    with poisoned(place, value), pytest.raises(TrainingError, match="epoch 2: .*not finite") as error:
        train.train(experiment, "cpu", "fp32")
    assert "\n" not in str(error.value)
    state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
    assert len(state["history"]) == 1 and all(torch.isfinite(v).all() for v in state["network"].values())


# What is drawn


def drawn(experiment, epoch=0, counts=None):
    """Batches of one epoch, with the allocation of a schedule unless given."""
    counts = counts or train.allocation(experiment, epoch, [{"psnr": [30, 28, 26, 24, 22]}] if epoch else [])
    step = Step(experiment, None, None, data.load(experiment.dataset, "train"))
    return [step.draw() for _ in train.batches(step, epoch, counts)]


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("task", TASKS)
def test_schedules_of_one_seed_see_the_same_crops_and_draws(demo, task, epoch):
    """Also where the level of an image is the same, its corruption is."""
    reference = drawn(tiny("rigid_joint", task), epoch)
    assert not torch.equal(reference[0][0], reference[1][0])
    for schedule in set(SCHEDULES) - {"hard_mining"}:
        experiment = tiny(schedule, task)
        for (x, y), (x_reference, y_reference) in zip(drawn(experiment, epoch), reference, strict=True):
            assert torch.equal(x, x_reference)
            levels = levels_of(train.allocation(experiment, epoch, [{"psnr": [30, 28, 26, 24, 22]}] if epoch else []))
            same = [i for i, level in enumerate(levels) if level == i // 4 + 1]
            assert torch.equal(y[same], y_reference[same])
    assert not torch.equal(drawn(tiny("rigid_joint", task, seed=1), epoch)[0][0], reference[0][0])


def levels_of(counts):
    """Level of every image of a batch, easiest first."""
    return [level for level, count in enumerate(counts or [], 1) for _ in range(count)]


@pytest.mark.parametrize("task", TASKS)
def test_every_run_of_a_seed_begins_with_the_same_weights(task):
    networks = [train.build(tiny(schedule, task), "cpu")[0] for schedule in SCHEDULES]
    for network in networks[1:]:
        assert_same(dict(network.state_dict()), dict(networks[0].state_dict()))
    other = train.build(tiny(task=task, seed=1), "cpu")[0]
    assert not torch.equal(other.encoder[0].weight, networks[0].encoder[0].weight)


def test_adam_is_that_of_the_paper():
    optimizer = train.build(Experiment.of(profile="paper", width=8), "cpu")[1]
    assert isinstance(optimizer, torch.optim.Adam)
    group = optimizer.param_groups[0]
    assert (group["lr"], group["betas"], group["weight_decay"]) == (2e-4, (0.5, 0.999), 0)


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_holds_the_allocated_levels(task):
    counts = [8, 6, 3, 2, 1]
    low, high, centred = severities(tiny(task=task), counts, "cpu")
    bounds = [paper.TASKS[task]["levels"][level - 1] for level in levels_of(counts)]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == bounds and not centred


@pytest.mark.parametrize("end", ["easy", "hard"])
@pytest.mark.parametrize("task", TASKS)
def test_a_fixated_batch_has_one_severity(task, end):
    experiment = tiny(f"fixated_{end}", task)
    low, high, centred = severities(experiment, train.allocation(experiment, 0, []), "cpu")
    assert low.tolist() == high.tolist() == [paper.TASKS[task][end]] * 20 and centred
    low, high, _ = severities(tiny(f"fixated_{end}", task, severity=2.0), None, "cpu")
    assert low.tolist() == high.tolist() == [2] * 20


def test_denoising_trains_on_grey_images(demo):
    x, y = drawn(tiny(task="denoise"))[0]
    colour, _ = drawn(tiny(task="deblur"))[0]
    assert x.shape == y.shape == (20, 1, 64, 64) and torch.equal(x, data.grey(colour))


def test_images_take_turns():
    order = train.shuffled(7, 40, torch.Generator().manual_seed(0))
    assert len(order) == 40
    for k in range(0, 35, 7):
        assert sorted(order[k : k + 7].tolist()) == list(range(7))
    assert not torch.equal(order[:7], order[7:14])


def fingerprint(batch):
    return tuple(t.numpy().tobytes() for t in batch)


def test_the_pool_of_hard_mining_is_static(demo):
    """Four batches of 20 images, each the same whenever it is visited, in another order each epoch."""
    experiment = tiny("hard_mining", pool_images=80, iterations=4)
    epochs = [[fingerprint(batch) for batch in drawn(experiment, epoch)] for epoch in range(6)]
    assert all(len(set(epoch)) == 4 and set(epoch) == set(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    assert not set(epochs[0]) & {
        fingerprint(b) for b in drawn(tiny("hard_mining", pool_images=80, iterations=4, seed=1))
    }


def test_pool_item_k_is_image_k_modulo_n(demo, monkeypatch):
    crop, seen = data.crop, []
    monkeypatch.setattr(
        data, "crop", lambda pack, index, *rest: seen.append(index.tolist()) or crop(pack, index, *rest)
    )
    drawn(tiny("hard_mining", pool_images=100, iterations=5))
    n = len(data.load("demo", "train"))
    assert sorted(seen) == sorted([(20 * k + j) % n for j in range(20)] for k in range(5))


# What is back-propagated


@pytest.mark.parametrize(
    ("schedule", "epoch", "hardest"), [("hard_mining", 0, 20), ("hard_mining", 1, 10), ("on_demand", 1, 20)]
)
def test_gradients_equal_a_plain_loop(demo, schedule, epoch, hardest):
    """Hard mining warms up for 50 of 1500 epochs (1 of 30), then only the 10 hardest of a batch count."""
    experiment = tiny(schedule, epochs=30, iterations=1)
    network, _ = train.build(experiment, "cpu")
    twin = copy.deepcopy(network).train()
    still = torch.optim.SGD(network.parameters(), lr=0.0)
    pack = data.load("demo", "train")
    step = Step(experiment, network, still, pack)
    loss = train.train_epoch(step, epoch, [4] * 5)

    next(train.batches(step, epoch, [4] * 5))
    x, y = step.draw()
    x_hat = twin(y)  # one pass, because BatchNorm sees the whole batch
    errors = [float(np.mean((a - b) ** 2)) for a, b in zip(x_hat.detach().numpy(), x.numpy(), strict=True)]
    chosen = sorted(range(20), key=lambda i: -errors[i])[:hardest]
    total = [torch.zeros_like(p) for p in twin.parameters()]
    for i in chosen:
        one = ((x_hat[i] - x[i]) ** 2).mean()
        for part, gradient in zip(
            total, torch.autograd.grad(one, list(twin.parameters()), retain_graph=True), strict=True
        ):
            part += gradient / hardest
    assert loss == pytest.approx(np.mean([errors[i] for i in chosen]), rel=1e-5)
    for parameter, expected in zip(network.parameters(), total, strict=True):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-3, atol=1e-5)


def test_validation_equals_a_plain_loop(demo):
    experiment = tiny(task="deblur")
    network, _ = train.build(experiment, "cpu")
    x = data.fixed_crops(data.load("demo", "validation"), 4, "validation")
    scores = train.validate(experiment, network, x, "cpu", "fp32")
    assert scores == train.validate(experiment, network, x, "cpu", "fp32") and len(scores) == 5
    for level, score in enumerate(scores, 1):
        y = TASKS["deblur"].corrupt(x, level, torch.Generator().manual_seed(data.seed_of("validate", level)))
        x_hat = network.eval()(y).detach().numpy()
        pairs = [((a + 1) / 2, (b + 1) / 2) for a, b in zip(x.numpy(), x_hat, strict=True)]
        expected = np.mean([metrics.peak_signal_noise_ratio(*pair, data_range=1) for pair in pairs])
        assert score == pytest.approx(expected, abs=1e-3)


def test_on_demand_follows_the_validation_of_the_epoch_before(demo):
    """Eq. 3 in fractions, largest remainder."""
    _, history = train.train(tiny(batch_size=50, epochs=4), "cpu", "fp32")
    assert history[0]["allocation"] == [10] * 5
    for before, after in zip(history, history[1:], strict=False):
        inverse = [1 / Fraction(p) for p in before["psnr"]]
        shares = [50 * w / sum(inverse) for w in inverse]
        counts = [math.floor(share) for share in shares]
        for i in sorted(range(5), key=lambda i: counts[i] - shares[i])[: 50 - sum(counts)]:
            counts[i] += 1
        assert after["allocation"] == counts


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("rigid_joint", [[4] * 5] * 5),
        ("staged_curriculum", [[20 * (i == k) for i in range(5)] for k in range(5)]),
        ("staged_anti_curriculum", [[20 * (i == 4 - k) for i in range(5)] for k in range(5)]),
        ("cumulative_curriculum", [[20, 0, 0, 0, 0], [10, 10, 0, 0, 0], [7, 7, 6, 0, 0], [5, 5, 5, 5, 0], [4] * 5]),
        (
            "cumulative_anti_curriculum",
            [[0, 0, 0, 0, 20], [0, 0, 0, 10, 10], [0, 0, 7, 7, 6], [0, 5, 5, 5, 5], [4] * 5],
        ),
        ("fixated_hard", [None] * 5),
    ],
)
def test_history_records_the_allocation_of_every_epoch(demo, schedule, expected):
    shares = []
    network, history = train.train(tiny(schedule, iterations=1), "cpu", "fp32", shares.append)
    assert [epoch["allocation"] for epoch in history] == expected
    assert all(set(epoch) == {"loss", "psnr", "allocation"} and len(epoch["psnr"]) == 5 for epoch in history)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0]) and not network.training


@pytest.mark.parametrize("task", TASKS)
def test_training_learns(demo, task):
    _, history = train.train(tiny(task=task, epochs=3, iterations=12), "cpu", "fp32")
    assert history[2]["loss"] < 0.8 * history[0]["loss"]
    assert np.mean(history[2]["psnr"]) > np.mean(history[0]["psnr"])


def test_precision_is_chosen_once_and_a_given_choice_stands():
    assert train.choose_precision("cpu", "bf16") == "bf16" and train.choose_precision("cuda", "fp32") == "fp32"
    assert train.choose_precision("cpu") in ("bf16", "fp32")
