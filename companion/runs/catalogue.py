"""Every run of the paper: those of each page of the book, and the campaigns, the most telling runs first.

The notebooks, `python -m companion reproduce`, `python -m companion plan`, the Snakefile and the book share this list.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from companion import published
from companion.comparators import DENOISERS, INPAINTERS, context_encoder, trained
from companion.data import sets
from companion.disk import files
from companion.measure import blocks, denoising, gradients_and_pool, recalibration
from companion.restore import pretrained
from companion.training import results
from companion.training.measurement import Measurement
from odl import paper
from odl.experiment import Experiment, check_dataset
from odl.parameters import ParameterError, choice, nearest
from odl.rivals import seed_of_specialists

# The pages of the book: functions of (profile, dataset, seeds, task) list what each trains and shows


def schedules(*names: str) -> Callable:
    """Return the function that lists some schedules on the task of a page."""
    return lambda profile, dataset, seeds, task: grid(profile, dataset, seeds, names, [task])


def compared(profile: str, dataset: str, seeds: list[int], task: str) -> list[Experiment]:
    """Return on-demand learning and its rivals in the pictures of every task."""
    names = {each: ("rigid_joint", published.figure2(each), "on_demand") for each in paper.AS_SHIPPED}
    return [experiment for each in names for experiment in grid(profile, dataset, seeds, names[each], [each])]


EXTRA_DATA = ("on-demand, half", "rigid joint, half", "rigid joint, all")  # the order of `halves`


def halves(profile: str, dataset: str, seeds: list[int], task="inpaint") -> list[Experiment]:
    """Return Sec. 6.6: on-demand and rigid joint learning with half of the training images, rigid joint with all."""
    half, whole = extra_data_sizes(dataset)
    standard = sets.DATASETS.get(sets.parse(dataset)[0], {}).get("train_images", whole)
    return [
        Experiment.of(task, dataset, name, seed, profile, train_images=0 if n == standard else n)
        for seed in seeds
        for name, n in (("on_demand", half), ("rigid_joint", half), ("rigid_joint", whole))
    ]


def extra_data_sizes(dataset: str) -> tuple[int, int]:
    """Return half and all of the training images for the test of Sec. 6.6."""
    # Paper: 100,000 and 200,000 faces of CelebA; here: 162,770, all that its official partition trains on,
    # and half and all of any other set, because none has as many.
    check_dataset(dataset)
    sets.need_training_images(dataset)
    base = sets.parse(dataset)[0]
    whole = {"celeba": 162_770, "sun397": 100_000, "bsds500": 400, "demo": 9, "celeba10k": 8000}.get(base)
    whole = whole or len(sets.list_images(dataset, sets.find(dataset))["train"])
    return 100_000 if base == "celeba" else max(1, whole // 2), whole


def inpainters(profile: str, dataset: str, seeds: list[int], task="inpaint") -> list:
    """Return Table 2: the on-demand inpainter, the context encoders with its numbers, and a fill that has no seed.

    Profile gpu, made for half an hour, leaves out the fill, which a GPU would wait for.
    """
    fills = [blocks.fill_of] if profile != "gpu" else []
    others = [partial(context_encoder.run_of, method) for method in INPAINTERS] + fills
    ours = grid(profile, dataset, seeds, ["on_demand"], ["inpaint"])
    return [experiment for own in ours for experiment in (own, *(other(own) for other in others))]


def denoisers(profile: str, dataset: str, seeds: list[int], task="denoise") -> list[Experiment]:
    """Return Table 3: our two denoisers at native resolution."""
    return [experiment for seed in seeds for experiment in denoising.our_systems(profile, dataset, seed).values()]


PAGES = {
    "table1": schedules(*published.SEVEN),
    "fixation": schedules(*published.FIXATED, "on_demand"),
    "allocation": lambda profile, dataset, seeds, task: grid(profile, dataset, seeds, ["on_demand"]),
    "qualitative": compared,
    "extra_data": halves,
    "applications": lambda profile, dataset, seeds, task: grid(profile, dataset, seeds, ["on_demand"], ["inpaint"]),
    "table2": inpainters,
    "table3": denoisers,
    "db11_spectrum": denoisers,
    "gallery": denoisers,
    "dose": lambda *scale: every_k(*scale[:3]) + ladder(*scale[:3]),
    "algorithm1": lambda *scale: [],  # these two train by themselves
    "add_your_own": lambda *scale: [],
}
DB11_PAGES = ("table3", "db11_spectrum", "gallery")  # these show the other denoisers, too


def runs(page: str, task: str, dataset: str, profile: str, seeds: list[int]) -> list:
    """Return what a page trains and shows; `task` counts where the page has one."""
    return [*dict.fromkeys(PAGES[page](profile, dataset, seeds, task))]


def shown_on(page: str, listed: list[Measurement], profile: str, dataset: str, seeds: list[int]) -> list[Measurement]:
    """Return those of the listed measurements that a page of the book shows; all for the scorecard.

    `table1-deblur` is the notebook `table1` with a task; `extra_data` with one that the book has not brings its own,
    of three seeds. Raises ParameterError for a page that is not known.
    """
    notebook, _, task = page.partition("-")
    choice("page", notebook, (*PAGES, "scorecard"))
    if task:
        choice("page", page, [f"{notebook}-{each}" for each in paper.AS_SHIPPED])
    if notebook == "scorecard":
        return listed
    tasks = [task] if task else paper.AS_SHIPPED
    shown = {experiment for each in tasks for experiment in runs(notebook, each, dataset, profile, seeds)}
    if task and notebook == "extra_data":  # the book has it of inpainting alone
        three, known = runs(notebook, task, dataset, profile, seeds[:3]), {one.experiment for one in listed}
        lacking = [experiment for experiment in three if experiment not in known]
        listed = listed + sum(map(measurements_of, lacking), [])
    ours = {one for one in listed if one.experiment and one.experiment.schedule not in trained.LEARNERS}
    return [one for one in listed if (one.experiment in shown if one in ours else notebook in DB11_PAGES)]


def files_of(page: str, profile: str, dataset: str, seeds: list[int]) -> list[Path]:
    """Return the results files that a page shows, as far as they are here; `page` as in `shown_on`."""
    listed = shown_on(page, measurements(profile, dataset, seeds), profile, dataset, seeds)
    paths = {one.path for one in listed if one.path.suffix == ".json"}
    if page in (*DB11_PAGES, "scorecard") and not is_faces(dataset):  # also where no photograph is here
        paths |= {*(files.results() / profile / "db11").glob("*.json")}
    return sorted(filter(Path.exists, paths))


def seeds_shown(seeds: list[int], dataset: str, train: bool) -> list[int]:
    """Return the seeds that a page was asked for; on faces, where it trains nothing, the campaign's if none is its."""
    asked = train or not is_faces(dataset) or {*seeds} & {*SEEDS_OF_FACES}
    return seeds if asked else SEEDS_OF_FACES


def schedules_shown(dataset: str, train: bool) -> list[str]:
    """Return the paper's seven schedules; on faces, where a page trains nothing, the rules since 2017, too."""
    return [*published.SEVEN, *(NEWER if is_faces(dataset) and not train else ())]


def by_network(experiments: list[Experiment], network: str) -> list[Experiment]:
    """Return some runs as another network has them: with its numbers, and with what each run overrides."""
    return [
        Experiment.of(e.task, e.dataset, e.schedule, e.seed, e.profile, **(e.overrides | {"network": network}))
        for e in experiments
    ]


# Sets of runs


MAIN_CONTEST = ("on_demand", "rigid_joint")  # what seeds have to tell apart first
FACES, SEEDS_OF_FACES = "celeba10k", [10, 11, 12, 13, 14]
NEWER = ("minimax_gap", "group_dro", "inverse_mse")  # of `published.LATER` what is trained on faces
DOSES, DOSES_OF_FACES = (4, -1), (4, -4)  # the k of 1/P^k beside Equation 3's 1 and rigid joint's 0
LADDER = ("inpaint", "denoise")
LONG_RUN_RIVAL = ("denoise", "cumulative_curriculum")  # ahead at the profile's length: also when long?
RUNGS = {  # profile → widths and epochs of the ladder; its last length takes longer than everything before it
    "smoke": ((4, 8), (1, 2, 4)),
    "demo": ((8, 16), (4, 20, 120)),
    "reference": ((16, 32), (10, 50, 300)),
}


def is_faces(dataset: str) -> bool:
    """Return True for the set of the campaign, of which each block was planned before its own runs were compared."""
    return sets.parse(dataset)[0] == FACES


def grid(
    profile: str, dataset: str, seeds: list[int], names, tasks=tuple(paper.AS_SHIPPED), **numbers
) -> list[Experiment]:
    """Return some schedules of some tasks; `numbers` differ from the profile's."""
    cases = product(seeds, names, tasks)
    return [Experiment.of(task, dataset, name, seed, profile, **numbers) for seed, name, task in cases]


def long_runs(profile: str, dataset: str, seeds=()) -> list[Experiment]:
    """Return the networks behind pictures and the command restore: trained longer, where a profile is short."""
    tasks = paper.AS_SHIPPED if profile in pretrained.LONG else ()
    return grid(profile, dataset, [0], ["on_demand"], tasks, **pretrained.LONG.get(profile, {}))


def every_k(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """Return rigid joint learning, Equation 3 and the other feedback of `doses`, of every task."""
    return grid(profile, dataset, seeds, MAIN_CONTEST) + doses(profile, dataset, seeds)


def doses(profile: str, dataset: str, seeds: list[int], ks=()) -> list[Experiment]:
    """Return other feedback, B_i ∝ 1/P_i^k: with all that the data set has, where no k is given."""
    ks = ks or (DOSES_OF_FACES if is_faces(dataset) else DOSES)
    return sum((grid(profile, dataset, [seed], ["on_demand"], sharpness=k) for seed in seeds for k in ks), [])


def ladder(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """Return the close contest at several widths and lengths, the longest runs and a third schedule last."""
    widths, lengths = RUNGS.get(profile, ((), ()))
    close = ((task, schedule) for task in LADDER for schedule in MAIN_CONTEST)
    rungs = product(lengths, seeds, widths, close)
    third = product(lengths[-1:], seeds, widths[-1:], [LONG_RUN_RIVAL])
    return [
        Experiment.of(task, dataset, schedule, seed, profile, width=width, epochs=epochs)
        for epochs, seed, width, (task, schedule) in (*rungs, *third)
    ]


def specialists(
    profile: str, dataset: str, seeds: list[int], ending="", tasks=tuple(paper.AS_SHIPPED)
) -> list[Experiment]:
    """Return the networks of one level each that the minimax gap of these seeds is told of; seeds share them."""
    shared = [*dict.fromkeys(map(seed_of_specialists, seeds))]
    return grid(profile, dataset, shared, [f"{name}{ending}" for name in published.SPECIALISTS], tasks)


# The campaigns. How many seeds a contest gets was fixed before any was looked at.


class Block(NamedTuple):
    """A row of a campaign: schedules, or a function of (profile, dataset, seeds) that lists runs.

    A block may have several rows; on faces no claim is judged on a part of one. `seeds` is the part of a campaign's
    seeds, `numbers` what differs from the profile, None where a profile has no such run.
    """

    name: str
    schedules: tuple[str, ...] | Callable
    seeds: slice
    tasks: tuple[str, ...] = tuple(paper.AS_SHIPPED)
    numbers: dict | None = {}

    def runs(self, profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
        """Return the runs of this row."""
        if self.numbers is None:
            return []
        if callable(self.schedules):
            return self.schedules(profile, dataset, seeds[self.seeds])
        return grid(profile, dataset, seeds[self.seeds], self.schedules, self.tasks, **self.numbers)


ALL, FIRST, NEXT, THREE, LAST = slice(None), slice(1), slice(1, 3), slice(3), slice(3, None)  # of the seeds
NARROW_TASKS = ("denoise", "inpaint")  # of the narrow network: the flattest task and the widest spread
CONFOUNDED = ("deblur", "denoise")  # tasks on which the cumulative curriculum is ahead on scenes
OPPONENTS_BLOCK = "opponents"  # the place of the systems of others in Table 3 and Figure 6


SCENES = [
    Block("contest", (*MAIN_CONTEST, *published.FIXATED), FIRST),
    Block("contest-more", MAIN_CONTEST, NEXT),
    Block("table3", denoisers, FIRST),
    Block("long", long_runs, FIRST),
    Block("doses", doses, FIRST),
    Block("curricula", (*published.CUMULATIVE, *published.PARTIAL, "on_demand_l2"), FIRST),
    Block("extra_data", halves, FIRST),
    Block("table2", inpainters, FIRST),
    Block("cumulative-more", published.CUMULATIVE, NEXT),
    Block("doses-more", doses, NEXT),
    Block("contest-last", MAIN_CONTEST, LAST),
    Block("extra_data-more", halves, NEXT),
    Block("table2-more", inpainters, NEXT),
    Block("table3-more", denoisers, NEXT),
    Block(OPPONENTS_BLOCK, (), FIRST),
    Block("curricula-more", (*published.FIXATED, *published.PARTIAL, "on_demand_l2"), NEXT),
    Block("ladder", ladder, THREE),
]


def on_faces(profile: str) -> list[Block]:
    """Return the campaign on faces.

    Each block was planned before its own runs were compared, but for the last two seeds of `static_easy` and of
    `second_moment`; those of the residual U-Net, E2, E3 and E4 when the paper's network had been measured on faces.
    """
    unet, curves = {"network": "unet"}, ("on_demand", "cumulative_curriculum")
    widths, lengths = RUNGS.get(profile, ((), ()))
    long = {"width": widths[-1], "epochs": lengths[-1]} if widths else None

    def narrow(steps: int, **more) -> dict | None:  # of each of 100 epochs, so that shares are renewed equally often
        return {"width": 8, "epochs": 100, "iterations": steps} | more if profile == "reference" else None

    return [
        Block("contest", MAIN_CONTEST, ALL),
        Block("cumulative", published.CUMULATIVE, ALL),
        Block("k=4", ("on_demand",), ALL, numbers={"sharpness": 4}),
        Block("k=-4", ("on_demand",), ALL, numbers={"sharpness": -4}),
        # The end of the rate, beside the profile's 0.2, which is the cumulative curriculum's last stage.
        Block("decay", curves, THREE, CONFOUNDED, {"decay": 0.4}),
        Block("decay", curves, THREE, CONFOUNDED, {"decay": 0.0}),
        # The curriculum's shares without its order, and recorded shares without feedback.
        Block("controls", ("static_easy", "replay"), THREE, CONFOUNDED),
        Block("fixated", tuple(published.FIXATED), THREE),
        Block("partial", published.PARTIAL, THREE),
        Block("partial", ("hard_mining",), FIRST, ("deblur",), {"batch_size": 100}),
        Block("inverse_mse", ("inverse_mse",), THREE),
        Block("group_dro", ("group_dro",), THREE),
        Block("minimax_gap", specialists, THREE),
        Block("minimax_gap", ("minimax_gap",), THREE),
        Block("static_easy", ("static_easy",), LAST, CONFOUNDED),
        # A network of today: the close contest; other shares; fixated models; the curriculum; rules of later papers.
        Block("N1", MAIN_CONTEST, ALL, numbers=unet),
        Block("N2-shares", ("on_demand",), THREE, numbers=unet | {"sharpness": 4}),
        Block("N2-shares", ("inverse_mse",), THREE, numbers=unet),
        Block("N2-fixated", tuple(published.FIXATED), THREE, numbers=unet),
        Block("N3-curriculum", ("cumulative_curriculum",), THREE, numbers=unet),
        Block("N3-rules", ("second_moment",), THREE, numbers=unet),
        Block("N3-rules", ("edm",), THREE, ("denoise",), unet),
        Block("N3-seeds", ("second_moment",), LAST, numbers=unet),  # three seeds left two tasks undecided
        # The paper's network where the rules are told PSNR with the known pixels put back.
        Block("E4-feedback", ("on_demand_composite",), ALL, paper.MASKED),
        Block("E4-minimax", partial(specialists, ending="_composite", tasks=paper.MASKED), THREE),
        Block("E4-minimax", ("minimax_gap_composite",), THREE, paper.MASKED),
        # The narrow network until longer training gains little, a block a length.
        Block("E2-10k", ("rigid_joint", "on_demand"), ALL, NARROW_TASKS, narrow(100)),
        Block("E2-10k", ("on_demand",), ALL, NARROW_TASKS, narrow(100, sharpness=4)),
        Block("E2-30k", ("rigid_joint", "on_demand"), THREE, NARROW_TASKS, narrow(300)),
        Block("E2-30k-more", ("rigid_joint", "on_demand"), LAST, NARROW_TASKS, narrow(300)),
        Block("E2-30k-more", ("on_demand",), ALL, NARROW_TASKS, narrow(300, sharpness=4)),
        Block("E2-100k", ("rigid_joint", "on_demand"), THREE, NARROW_TASKS, narrow(1000)),
        Block("E2-100k", ("on_demand",), THREE, NARROW_TASKS, narrow(1000, sharpness=4)),
        Block("E2-300k", ("rigid_joint", "on_demand"), THREE, NARROW_TASKS, narrow(3000)),
        Block("E2-300k", ("on_demand",), THREE, NARROW_TASKS, narrow(3000, sharpness=4)),
        Block("long", MAIN_CONTEST, FIRST, numbers=long),
        Block("long-more", (*MAIN_CONTEST, "cumulative_curriculum"), THREE, numbers=long),
        # The networks that are scored again with BatchNorm statistics of each level; all are in blocks above.
        Block("E3-hard", ("fixated_hard",), THREE),
        Block("E3-easy", ("fixated_easy",), THREE),
        Block("E3-staged", ("staged_curriculum",), THREE, recalibration.STAGED_TASKS),
    ]


def runs_of_blocks(profile: str, dataset: str, seeds: list[int]) -> dict[str, list[Experiment]]:
    """Return the runs of every block of a data set's campaign, in its order; the lowest seeds are the first."""
    found, seeds = {}, sorted(seeds)
    for block in on_faces(profile) if is_faces(dataset) else SCENES:
        found.setdefault(block.name, []).extend(block.runs(profile, dataset, seeds))
    return found


def whole_blocks(profile: str, dataset: str, seeds: list[int], load=None) -> list[list[Experiment]]:
    """Return the blocks of which every run is measured, as `load` says."""
    every = runs_of_blocks(profile, dataset, seeds).values()
    return [block for block in every if block and all(map(load or results.load_result, block))]


def measurements(profile: str, dataset: str, seeds: list[int], names=()) -> list[Measurement]:
    """Return every measurement of the paper on one data set, or of some blocks: E2, which is none, stands for E2-10k, …

    Raises ParameterError.
    """
    every, found = runs_of_blocks(profile, dataset, seeds), {}
    parts = {n: [n] if n in every else [block for block in every if n == block.partition("-")[0]] for n in names}
    other = "bsds500" if is_faces(dataset) else f"{FACES}-native"
    for name in (name for name, chosen in parts.items() if not chosen):
        if any(name in (block, block.partition("-")[0]) for block in runs_of_blocks(profile, other, seeds)):
            raise ParameterError(f"block={name!r} belongs to --dataset {other}, not to {dataset!r}")
        choice("block", name, every)
    for block in sum(parts.values(), []) or every:
        others = opponents(profile) if block == OPPONENTS_BLOCK else []
        listed = [one for experiment in every[block] for one in measurements_of(experiment)] + others
        found |= {one.path: found.get(one.path, one) for one in listed}
    return [*found.values()]


def measurements_of(experiment) -> list[Measurement]:
    """Return the measurement of a run, and whatever else is measured of its network: on blocks, on photographs, …"""
    if experiment.schedule in INPAINTERS:
        return [context_encoder.measurement_of(experiment)]
    if experiment.schedule == blocks.BIHARMONIC:
        return [blocks.measurement_of_fill(experiment)]
    own, plain = results.measurement_of(experiment), not experiment.overrides
    if plain and (experiment.task, experiment.schedule) == ("inpaint", "on_demand"):
        return [own, blocks.measurement_of(experiment)]
    if plain and experiment.schedule in gradients_and_pool.MEASURED:
        return [own, *gradients_and_pool.measurements_of(experiment)]
    of_campaign = is_faces(experiment.dataset) and experiment.seed in SEEDS_OF_FACES[THREE]
    if plain and of_campaign and (experiment.task, experiment.schedule) in recalibration.RECALIBRATED:
        return [own, recalibration.measurement_of(experiment)]
    native = experiment.dataset.endswith("-native") and photographs_here(experiment.profile)
    ours = denoising.our_systems(experiment.profile, experiment.dataset, experiment.seed) if native else {}
    systems = [system for system, known in ours.items() if known == experiment]
    return [own, *sum((denoising.on_db11(system, experiment.profile, experiment) for system in systems), [])]


def only(names: list[str], listed: list[Measurement]) -> list[Measurement]:
    """Return the measurements that go by `names`, or by paths below the root. Raises ParameterError."""
    known = {}
    for one in listed:
        known |= {one.name: one, str(one.path.relative_to(files.root())): one}
    for name in names:
        if name not in known:
            raise ParameterError(f"only={name!r} is none of these runs{nearest(name, sorted(known))}")
    chosen = {known[name] for name in names}
    return [one for one in listed if one in chosen]


# Table 3 and Figure 6


DB11_PROFILES = ("reference", "gpu", "paper")  # profiles; the small ones measure none of the eleven photographs


def photographs_here(profile: str) -> bool:
    """Return True if DB11 can be measured."""
    return profile in DB11_PROFILES and sets.is_here("db11")


def left_out(page: str, profile: str, dataset: str) -> str:
    """Return lines on what a page lacks because photographs are not here; empty where it lacks nothing."""
    if page.partition("-")[0] not in (*DB11_PAGES, "scorecard") or is_faces(dataset):
        return ""
    without = {"db11": "Table 3 and Figure 6 are", "bsds500": "opponents of Table 3 that have to be trained are"}
    missing = [name for name in without if profile in DB11_PROFILES and not sets.is_here(name)]
    command = "python -m odl data prepare"
    return "".join(f"{without[n]} left out, because {n} is not here: {command} {n}\n" for n in missing)


def opponents(profile: str) -> list[Measurement]:
    """Return the other systems on DB11, those of `denoising.SLOW` last; what learns is trained first if it has to be.

    Left out are those whose package, or the photographs that they learn on, are not here. Profile gpu, made for half
    an hour, has the noisy photographs alone.
    """
    if not photographs_here(profile):
        return []
    learners = trained.LEARNERS if sets.is_here("bsds500") else ()
    systems = [name for name, system in DENOISERS.items() if system.here() or name in learners]
    systems = [denoising.NOISY, *(sorted(systems, key=denoising.SLOW.__contains__) if profile != "gpu" else [])]
    return [one for system in systems for one in of_opponent(system, profile)]


def of_opponent(system: str, profile: str) -> list[Measurement]:
    """Return what is measured of a system, after its training where that is needed."""
    cases = denoising.on_db11(system, profile)
    lacks = not denoising.can_run(system) and any(one.load() is None for one in cases)
    return [*(cases[0].needs if lacks else ()), *cases]
