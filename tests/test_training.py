"""Algorithm 1: what is drawn, what is back-propagated, and exact resume after any kill."""

import copy
import hashlib
import itertools
import json
import math
import os
import random
import signal
import time
from collections import defaultdict
from functools import partial

import children
import conftest
import numpy as np
import pytest
import torch
from filelock import FileLock, Timeout
from skimage import metrics

from companion.data import packs
from companion.disk import ending, files
from companion.training import checkpoint, results
from odl import crops, learn, paper
from odl.corruptions import TASKS
from odl.learn import Step, severities
from odl.parameters import ParameterError
from odl.schedules import SCHEDULES, allocate_batches, begin

PAPERS = list(SCHEDULES)[: list(SCHEDULES).index("level_1")]  # the paper's; `test_rivals.py` has the others
PSNR = [40.0, 30, 20, 10, 5]
TINY = {"width": 4, "epochs": 5, "iterations": 2, "batch_size": 20}


def tiny(schedule="on_demand", task="interpolate", **numbers):
    return conftest.tiny(task, schedule, **(TINY | numbers))


def digest(value) -> str:
    """SHA-256 of nested dicts, lists, numbers and tensors, every bit of them."""

    def bits(tensor):
        return [str(tensor.dtype), *tensor.shape, tensor.contiguous().numpy().tobytes().hex()]

    return hashlib.sha256(json.dumps(value, sort_keys=True, default=bits).encode()).hexdigest()


def saved_by(experiment) -> dict:
    """The state in a run's checkpoint, but for how long it took; without history where there is none."""
    state = checkpoint.load_checkpoint(files.runs() / experiment.run_id, experiment) or {"history": []}
    return {key: value for key, value in state.items() if key != "seconds"}


def trained(experiment) -> str:
    """Digest of everything that a finished run leaves: weights, Adam's state and history."""
    results.train(experiment)
    state = saved_by(experiment)
    assert len(state["history"]) == experiment.epochs
    return digest(state)


@pytest.fixture
def whole(demo, elsewhere):
    """Check that a run that has begun ends bit for bit as it does in one piece."""

    def check(experiment):
        ended_here = trained(experiment)
        with elsewhere():
            assert ended_here == trained(experiment)

    return check


KILLS = 20  # half of them at a random time, half inside a save: at a call of `fsync` or `replace`


@pytest.mark.parametrize("schedule", ["on_demand", "hard_mining"])
def test_a_run_killed_again_and_again_ends_bit_for_bit_as_in_one_piece(whole, schedule):
    """By `kill -9`; no epoch that was kept is lost."""
    chance, kept = random.Random(schedule), [0]
    experiment = tiny(schedule, epochs=100, precision="bf16")
    for kill in range(KILLS // 2):
        death = (chance.choice(["fsync", "replace"]), chance.randint(1, 9), chance.random() < 0.5)
        steps = children.SERVER.Value("l", 0, lock=False)
        child = children.in_a_child(children.train, experiment, steps, death if kill % 2 else None)
        if not kill % 2:
            until = chance.randint(1, 12)
            while child.is_alive() and steps.value < until:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.02))
            child.kill()
        assert children.ended(child) == -signal.SIGKILL
        kept.append(len(saved_by(experiment)["history"]))
    assert kept == sorted(kept) and KILLS // 2 <= kept[-1] < experiment.epochs
    whole(experiment)


@pytest.mark.parametrize("sent", [signal.SIGINT, *ending.ENDING], ids=lambda sent: sent.name)
def test_a_signal_keeps_every_whole_epoch_though_no_checkpoint_was_due(demo, sent):
    """And ends with the status that a shell has for it; SLURM warns by USR1, a limit of processor time by XCPU."""
    experiment, epochs = tiny(epochs=9999), children.SERVER.Value("l", 0, lock=False)
    numbers = [f"--set={name}={value}" for name, value in experiment.overrides.items()]
    arguments = ["train", "--task", experiment.task, "--profile", "smoke", "--device", "cpu", *numbers]
    child = children.in_a_child(children.command, arguments, epochs)
    while child.is_alive() and epochs.value < 3:
        time.sleep(0.01)
    os.kill(child.pid, sent)
    assert children.ended(child) == 128 + sent
    assert len(saved_by(experiment)["history"]) >= epochs.value >= 3


def interrupted(experiment, done):
    """Train until that share is done, with a checkpoint after every epoch, then Ctrl-C. Returns the folder."""

    def progress(share):
        if share > done:
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0)
        results.train(experiment, progress=progress)
    return files.runs() / experiment.run_id


def test_a_run_took_all_the_time_that_it_took_and_is_not_trained_again(demo):
    experiment = tiny(epochs=4)
    folder = interrupted(experiment, 0.6)
    state = checkpoint.load_checkpoint(folder, experiment)
    assert min(state["seconds"]) > 0
    checkpoint.save_checkpoint(folder, state | {"seconds": [1000.0, 2000.0]})
    first, again = (results.train(experiment, progress=p) for p in (None, lambda _: pytest.fail("trained again")))
    assert 1000 < first.seconds[0] < 1100 and 2000 < first.seconds[1] < 2100 and not first.network.training
    one, other = (digest([t.seconds, t.history, t.network.state_dict()]) for t in (first, again))
    assert one == other  # as the checkpoint has it


# Checkpoints that are not to be used


@pytest.mark.parametrize("names", [("checkpoint.pt",), ("checkpoint.pt", "previous.pt")], ids=len)
def test_without_a_whole_checkpoint_the_one_before_is_used_or_training_begins_again(whole, names, capsys):
    """And another device's checkpoint is resumed with this one's optimizer."""
    experiment = tiny(epochs=4)
    folder = interrupted(experiment, 0.8)
    assert len(checkpoint.load_checkpoint(folder, experiment)["history"]) == 3
    for name in names:
        (folder / name).write_bytes((folder / name).read_bytes()[:-1])
    state = checkpoint.load_checkpoint(folder, experiment)
    assert (len(state["history"]) == 2) if len(names) == 1 else state is None
    said = capsys.readouterr().out
    assert all(f"{folder / name}: damaged" in said for name in names) and said.count(": damaged") == len(names)
    if state:
        for group in state["optimizer"]["param_groups"]:
            group["capturable"] = True  # as on a GPU
        checkpoint.save_checkpoint(folder, state)
    whole(experiment)


def drawn(experiment, epoch=0):
    """Batches of one epoch."""
    step = step_of(experiment)
    return [step.draw(*batch[:3]) for batch in learn.batches(step, epoch, allocated(experiment, epoch))]


def step_of(experiment):
    pack = packs.load(experiment.dataset, "train")
    return Step(experiment, schedule_of(experiment), pack, *learn.build(experiment, "cpu"))


def schedule_of(experiment):
    return begin(SCHEDULES[experiment.schedule])


def allocated(experiment, epoch):
    return learn.allocation(experiment, schedule_of(experiment), epoch, [30, 28, 26, 24, 22] if epoch else None)[0]


@pytest.mark.parametrize(("task", "epoch"), list(zip(TASKS, (0, 3, 0, 3), strict=True)))
def test_schedules_of_one_seed_see_the_same_crops_and_draws(demo, task, epoch):
    """Where the level of an image is the same, its corruption is, and only there."""
    reference = drawn(tiny("rigid_joint", task), epoch)
    assert not torch.equal(reference[0][0], reference[1][0])
    for schedule in {*PAPERS} - {"hard_mining"}:
        experiment = tiny(schedule, task)
        counts = allocated(experiment, epoch)
        for i, ((x, y), (x_reference, y_reference)) in enumerate(zip(drawn(experiment, epoch), reference, strict=True)):
            assert torch.equal(x, x_reference)
            levels = [] if counts is None else np.repeat(range(1, 6), counts[i])
            same = [k for k, level in enumerate(levels) if level == k // 4 + 1]
            moved = [k for k in range(len(levels)) if k not in same]
            assert torch.equal(y[same], y_reference[same])
            assert not moved or not torch.equal(y[moved], y_reference[moved])
    assert not torch.equal(drawn(tiny("rigid_joint", task, seed=1), epoch)[0][0], reference[0][0])


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_holds_the_allocated_levels_and_a_fixated_one_a_single_severity(task):
    counts, levels = [[8, 6, 3, 2, 1], [4] * 5], paper.TASKS[task]["levels"]
    low, high, factors = severities(tiny(task=task), schedule_of(tiny()), counts, [1, 2, 3, 4, 5], "cpu")
    expected = np.stack([np.repeat(levels[:5], row, 0) for row in counts])
    assert np.array_equal(np.stack([low, high], 2), expected)
    assert np.array_equal(factors, [np.repeat([1, 2, 3, 4, 5], row) for row in counts])
    for end in ("easy", "hard"):
        for numbers, severity in (({}, paper.TASKS[task][end]), ({"severity": 2.0}, 2)):
            experiment = tiny(f"fixated_{end}", task, **numbers)
            low, high, factors = severities(experiment, schedule_of(experiment), allocated(experiment, 0), None, "cpu")
            assert low.tolist() == high.tolist() == [[severity] * 20] and factors is None


def test_images_take_turns():
    order = learn.shuffled(7, 40, torch.Generator().manual_seed(0))
    assert len(order) == 40
    for k in range(0, 35, 7):
        assert sorted(order[k : k + 7].tolist()) == list(range(7))
    assert not torch.equal(order[:7], order[7:14])


def pool_item(experiment, pack, k):
    """Item k of the pool by a plain loop, (channels, 64, 64) clean and damaged: everything from a seed of its own."""
    generator = torch.Generator().manual_seed(crops.seed_of(experiment.seed, "pool", k))
    image = pack.image(k % len(pack))
    u, room = torch.rand((1, 3), generator=generator)[0].tolist(), np.array(image.shape[:2]) - 63
    top, left = int(u[0] * room[0]), int(u[1] * room[1])
    x = image[top : top + 64, left : left + 64][:, :: -1 if u[2] < 0.5 else 1].transpose(2, 0, 1) / 127.5 - 1
    x = torch.from_numpy(np.float32(x))[None]
    x = crops.grey(x) if experiment.task == "denoise" else x
    visit, photograph = divmod(k, len(pack))
    level = (visit + photograph) % 5 + 1
    return x[0], TASKS[experiment.task].corrupt(x, level, generator)[0]


@pytest.mark.parametrize("task", TASKS)
def test_the_pool_is_static_and_met_in_new_batches_every_epoch(demo, task):
    """An item has its own seed's crop and damage, to half a grey level, the same at every visit."""
    experiment, pack = tiny("hard_mining", task, pool_images=60, iterations=3), packs.load("demo", "train")
    step, visits, batches = step_of(experiment), defaultdict(set), []
    for epoch in range(3):
        for index, low, high, *_ in learn.batches(step, epoch, allocated(experiment, epoch)):
            batches.append(frozenset(index.tolist()))
            for k, *images in zip(index.tolist(), *step.draw(index, low, high), strict=True):
                visits[k].add(tuple(image.numpy().tobytes() for image in images))
        assert sorted(k for batch in batches[-3:] for k in batch) == list(range(60))
    assert len(set(batches)) == 9 and all(len(seen) == 1 for seen in visits.values())
    for k in range(60):
        for expected, seen in zip(pool_item(experiment, pack, k), *visits[k], strict=True):
            difference = expected.numpy().flatten() - np.frombuffer(seen, np.float32)
            assert np.abs(difference).max() <= 0.5 / 127.5 + 1e-5


def test_weights_are_written_before_another_process_may_have_the_run(demo, monkeypatch):
    """Whoever has it next clears what a process that was killed has left half written."""
    waited, experiment = [], tiny()

    def keep(*_):
        lock = files.runs() / "locks" / f"{experiment.run_id.replace('/', '-')}.lock"
        with pytest.raises(Timeout):
            FileLock(lock).acquire(timeout=0)
        waited.append(lock)

    monkeypatch.setattr(results, "keep_weights", keep)
    results.train(experiment)
    assert waited


def test_a_pool_that_does_not_fit_is_refused_before_it_is_made(demo, monkeypatch):
    monkeypatch.setattr("odl.learn.room", lambda device: 10 * 2 * 3 * 64 * 64)
    with pytest.raises(ParameterError, match="pool_images=11 .*nearest: 10$"):
        step_of(tiny("hard_mining", pool_images=11))
    assert step_of(tiny("hard_mining", pool_images=10)).pool.shape[1] == 10


def plain_loss(schedule, epoch, errors, levels):
    """Of a batch of 20; hard mining warms up for a third of training, then only the hardest tenth counts."""
    if schedule == "hard_mining" and epoch >= 10:
        return sum(sorted(errors, key=lambda error: -error.item())[:2]) / 2
    if schedule == "second_moment":
        share = [p / sum(PSNR) for p in PSNR]
        return sum(error / 5 / share[level] for error, level in zip(errors, levels, strict=True)) / 20
    return sum(errors) / 20


CASES = [("hard_mining", 9), ("hard_mining", 10), ("on_demand", 10), ("second_moment", 10)]


@pytest.mark.parametrize(("schedule", "epoch"), CASES)
def test_gradients_equal_a_plain_loop(demo, schedule, epoch):
    experiment = tiny(schedule, epochs=30, iterations=1)
    step = step_of(experiment)
    counts, factors = learn.allocation(experiment, step.schedule, epoch, PSNR)
    network, twin = step.network, copy.deepcopy(step.network).train()
    batches = partial(learn.batches, step, epoch, counts, factors)  # the same draws at every call
    loss = learn.train_epoch(experiment, network, step.optimizer, step, batches(), epoch)

    index, low, high, *_ = next(batches())
    x, y = step.draw(index, low, high)
    errors = [((a - b) ** 2).mean() for a, b in zip(twin(y), x, strict=True)]  # BatchNorm sees the whole batch
    expected = plain_loss(schedule, epoch, errors, np.repeat(range(5), counts[0]))
    total = torch.autograd.grad(expected, list(twin.parameters()))
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for parameter, expected in zip(network.parameters(), total, strict=True):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("decay", "warm_up"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.2)])
def test_the_rate_rises_is_constant_then_falls_in_a_straight_line_to_0(demo, monkeypatch, decay, warm_up):
    """Of every step, against the formula over steps."""
    numbers = {"decay": decay, "warm_up": warm_up, "epochs": 5, "iterations": 4, "learning_rate": 1e-3}
    experiment, rates, take = tiny(**numbers), [], Step.__call__

    def noted(step, *batch):
        rates.append(step.optimizer.param_groups[0]["lr"])
        return take(step, *batch)

    monkeypatch.setattr(Step, "__call__", noted)
    results.train(experiment)
    falling, rising = decay * 20, warm_up * 20
    expected = [min(1, (20 - i) / falling if falling else 1, (i + 1) / rising if rising else 1) for i in range(20)]
    assert rates == pytest.approx([1e-3 * factor for factor in expected])


def test_a_gradient_longer_than_the_limit_keeps_its_direction(demo):
    norms, kept = [], []
    for clip in (0.0, 1e-3, 1e3):
        experiment = tiny(clip=clip, iterations=1)
        step = step_of(experiment)
        counts, factors = learn.allocation(experiment, step.schedule, 0, None)
        learn.train_epoch(experiment, step.network, step.optimizer, step, learn.batches(step, 0, counts, factors), 0)
        kept.append(torch.cat([parameter.grad.flatten() for parameter in step.network.parameters()]))
        norms.append(kept[-1].norm().item())
    assert norms[0] > 1e-3 and norms[1] == pytest.approx(1e-3, rel=1e-2) and torch.equal(kept[0], kept[2])
    torch.testing.assert_close(kept[1] / norms[1], kept[0] / norms[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("task", ["deblur", "inpaint"])
def test_validation_equals_a_plain_loop(demo, task):
    experiment = tiny(task=task)
    network, _ = learn.build(experiment, "cpu")
    x = crops.fixed_crops(packs.load("demo", "validation"), 4, "validation")
    scores = learn.validate(experiment, network, x)
    assert scores == learn.validate(experiment, network, x) and len(scores["psnr"]) == 5
    assert ("composite" in scores) == (task in paper.MASKED)
    for level, (score, rms) in enumerate(zip(scores["psnr"], scores["rms_error"], strict=True), 1):
        y = TASKS[task].corrupt(x, level, torch.Generator().manual_seed(crops.seed_of("validate", level)))
        x_hat = network.eval()(y).detach().numpy()
        pairs = [((a + 1) / 2, (b + 1) / 2) for a, b in zip(x.numpy(), x_hat, strict=True)]
        expected = np.mean([metrics.peak_signal_noise_ratio(*pair, data_range=1) for pair in pairs])
        assert score == pytest.approx(expected, abs=1e-3)
        losses = [((a - b) ** 2).mean() for a, b in zip(x.numpy(), x_hat, strict=True)]
        assert rms == pytest.approx(math.sqrt(sum(loss**2 for loss in losses) / len(losses)), rel=1e-4)
        if task in paper.MASKED:
            known = (y == x).all(1, keepdim=True).numpy()
            kept = np.where(known, x.numpy(), x_hat)
            pairs = [((a + 1) / 2, (b + 1) / 2) for a, b in zip(x.numpy(), kept, strict=True)]
            expected = np.mean([metrics.peak_signal_noise_ratio(*pair, data_range=1) for pair in pairs])
            assert scores["composite"][level - 1] == pytest.approx(expected, abs=1e-3)


NAMED = {"on_demand": "psnr", "on_demand_composite": "composite", "second_moment": "rms_error"}


@pytest.mark.parametrize(("schedule", "score"), NAMED.items())
def test_a_schedule_is_told_the_score_that_it_names(demo, schedule, score):
    """Its shares are those of that score of the epoch before, which the history keeps; the dose is of what came out."""
    history = results.train(tiny(schedule, "inpaint", batch_size=23, epochs=3, iterations=20)).history
    for before, after in itertools.pairwise([{score: [1] * 5}, *history]):
        told = np.array(before[score])
        shares = allocate_batches(told if score == "rms_error" else 1 / told, 23, 20)[0].mean(0) / 23
        assert after["allocation"] == pytest.approx(100 * shares, abs=1e-5)
        assert after["dose"] == pytest.approx(np.abs(shares - 1 / 5).mean())
    assert score == "psnr" or history[0]["psnr"] != history[0][score]
