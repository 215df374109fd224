"""Every run of the paper: those of each page of the book, and all in an order that makes each table useful early.

The notebooks, `python -m companion reproduce`, `python -m companion plan`, the Snakefile and the book share this list.
"""

import math
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path

from companion import published
from companion.comparators import DENOISERS, INPAINTERS, context_encoder, trained
from companion.comparators.check import Run
from companion.data import sets
from companion.disk import files
from companion.measure import blocks, denoising, gradients_and_pool, recalibration
from companion.restore import pretrained
from companion.training import results
from companion.training.measurement import Job, Measurement, job_of, of_network
from odl import paper
from odl.evaluation import TESTED
from odl.experiment import Experiment, check_dataset
from odl.parameters import ParameterError, choice, nearest

# The pages of the book


def schedules(names, task: str, dataset: str, profile: str, seed: int) -> list[Experiment]:
    """Some schedules on one task."""
    return [Experiment.of(task, dataset, name, seed, profile) for name in names]


def every_task(names, task: str, dataset: str, profile: str, seed: int) -> list[Experiment]:
    """Schedules of every task, whichever is given; names: task → schedules."""
    return [run for each in names for run in schedules(names[each], each, dataset, profile, seed)]


EXTRA_DATA = ("on-demand, half", "rigid joint, half", "rigid joint, all")  # the order of `halves`


def halves(task: str, dataset: str, profile: str, seed: int) -> list[Experiment]:
    """Sec. 6.6: on-demand and rigid joint learning with half of the training images, rigid joint with all of them."""
    half, whole = extra_data_sizes(dataset)
    standard = sets.DATASETS.get(sets.parse(dataset)[0], {}).get("train_images", whole)
    return [
        Experiment.of(task, dataset, name, seed, profile, train_images=0 if n == standard else n)
        for name, n in (("on_demand", half), ("rigid_joint", half), ("rigid_joint", whole))
    ]


def extra_data_sizes(dataset: str) -> tuple[int, int]:
    """Half and all of the training images for the test of Sec. 6.6."""
    # Paper: 100,000 and 200,000 faces of CelebA; here: 162,770, all that its official partition trains on,
    # and half and all of any other set, because none has as many.
    check_dataset(dataset)
    base = sets.parse(dataset)[0]
    whole = {"celeba": 162_770, "sun397": 100_000, "bsds500": 400, "demo": 9, "celeba10k": 8000}.get(base)
    whole = whole or len(sets.list_images(dataset, sets.find(dataset))["train"])
    return 100_000 if base == "celeba" else max(1, whole // 2), whole


def inpainters(task: str, dataset: str, profile: str, seed: int) -> list:
    """Table 2: the on-demand inpainter, the context encoders with its numbers, and a fill that has no seed.

    Profile gpu, made for half an hour, leaves out the fill, which a GPU would wait for.
    """
    ours = Experiment.of("inpaint", dataset, "on_demand", seed, profile)
    encoders = [context_encoder.run_of(method, ours) for method in INPAINTERS]
    fill = Run(**(asdict(ours) | {"schedule": blocks.CLASSICAL, "seed": 0}))
    return [ours, *encoders, *([fill] if profile != "gpu" else [])]


def denoisers(task: str, dataset: str, profile: str, seed: int) -> list[Experiment]:
    """Table 3: our two denoisers at native resolution."""
    return list(denoising.our_systems(profile, dataset, seed).values())


def feedback(task: str, dataset: str, profile: str, seed: int) -> list[Experiment]:
    """Dose and ladder: every k on every task, and on-demand and rigid joint learning on every rung."""
    return every_k(profile, dataset, [seed]) + ladder(profile, dataset, [seed])


PAGES = {  # page → the function of (task, dataset, profile, seed) that lists what it trains and shows
    "table1": partial(schedules, tuple(published.SEVEN)),
    "fixation": partial(schedules, (*published.FIXATED, "on_demand")),
    "allocation": partial(every_task, dict.fromkeys(paper.TASKS, ("on_demand",))),
    "qualitative": partial(
        every_task, {task: ("rigid_joint", published.figure2(task), "on_demand") for task in paper.TASKS}
    ),
    "extra_data": halves,
    "applications": lambda *case: inpainters(*case)[:1],
    "table2": inpainters,
    "table3": denoisers,
    "db11_spectrum": denoisers,
    "gallery": denoisers,
    "dose": feedback,
    "algorithm1": lambda *case: [],  # these two train by themselves
    "add_your_own": lambda *case: [],
}
WITH_DB11 = ("reference", "gpu", "paper")  # profiles
ON_DB11 = ("table3", "db11_spectrum", "gallery")  # these show the other denoisers, too


def runs(page: str, task: str, dataset: str, profile: str, seeds: list[int]) -> list:
    """What a page trains and shows, seed by seed; `task` counts where the page has one."""
    return list(dict.fromkeys(run for seed in seeds for run in PAGES[page](task, dataset, profile, seed)))


def shown_on(page: str, jobs: list[Job], profile: str, dataset: str, seeds: list[int]) -> list[Job]:
    """The jobs, of a profile, data set and seeds, whose results a page of the book shows; all for the scorecard.

    `table1-deblur` is the notebook `table1` with a task; `extra_data` with one that the book has not brings its own
    jobs, of three seeds. Raises ParameterError for a page that is not known.
    """
    notebook, _, task = page.partition("-")
    choice("page", notebook, (*PAGES, "scorecard"))
    if task:
        choice("task of the page", task, paper.TASKS)
    if notebook == "scorecard":
        return jobs
    tasks = [task] if task else paper.TASKS
    shown = {run for each in tasks for run in runs(notebook, each, dataset, profile, seeds)}
    if task and notebook == "extra_data":  # the book has it of inpainting alone
        three, known = runs(notebook, task, dataset, profile, seeds[:3]), {job.experiment for job in jobs}
        jobs = jobs + [job_with_all(run) for run in three if run not in known]
    others = [job for job in jobs if not job.experiment or job.experiment.schedule in trained.LEARNERS]
    return [job for job in jobs if (notebook in ON_DB11 if job in others else job.experiment in shown)]


def files_of(page: str, profile: str, dataset: str, seeds: list[int]) -> list[Path]:
    """The results files that a page shows, as far as they are here; `page` as in `shown_on`."""
    listed = shown_on(page, jobs(profile, dataset, seeds), profile, dataset, seeds)
    paths = {m.path for job in listed for m in job.measurements if m.path.suffix == ".json"}
    if (
        page in (*ON_DB11, "scorecard") and sets.parse(dataset)[0] != FACES
    ):  # these show the systems of others also where no photograph is here
        paths |= {*(files.results() / profile / "db11").glob("*.json")}
    return sorted(filter(Path.exists, paths))


# All runs, in order

CLOSE = ("on_demand", "rigid_joint")  # what seeds have to tell apart first
SEEDS_OF_FACES = [10, 11, 12, 13, 14]
FACES = "celeba10k"  # whose campaign was planned before any of its runs, but for a block of `of_faces`
DOSES = (4, -1)  # the k of 1/P^k beside Equation 3's 1 and rigid joint's 0
DOSES_OF_FACES = (4, -4)
DECAYS = (0.4, 0.0)  # beside the profile's 0.2, which is the cumulative curriculum's last stage
CONFOUNDED = ("deblur", "denoise")  # tasks on which the cumulative curriculum is ahead on scenes
CONTROLS = ("static_easy", "replay")  # its shares without its order, and recorded shares without feedback
NEWER = ("minimax_gap", "group_dro", "inverse_mse")  # of `published.LATER` what the campaign trains
LADDER = ("inpaint", "denoise")
STRONGEST = ("denoise", "cumulative_curriculum")  # ahead of on-demand learning at the profile's length: also when long?
RUNGS = {  # profile → widths and epochs of the ladder; its last length takes longer than everything before it
    "smoke": ((4, 8), (1, 2, 4)),
    "demo": ((8, 16), (4, 20, 120)),
    "reference": ((16, 32), (10, 50, 300)),
}
DB11_WORK = 1765  # batches of 100 windows at stride 3 in the eleven photographs


def jobs(profile: str, dataset: str, seeds: list[int]) -> list[Job]:
    """Every job of the paper on one data set, in blocks, the most telling first.

    How many seeds a contest gets is fixed here, before any is looked at: all for the close one, three for the others;
    `of_faces` names an exception.
    """
    if sets.parse(dataset)[0] == FACES:
        return [job_with_all(run) for run in dict.fromkeys(sum(of_faces(profile, dataset, seeds), []))]
    first, three, page = seeds[:1], seeds[:3], {"task": "inpaint", "dataset": dataset, "profile": profile}
    order = [
        grid(profile, dataset, first, (*CLOSE, *published.FIXATED)),
        grid(profile, dataset, three[1:], CLOSE),
        runs("table3", **page, seeds=first),
        long_runs(profile, dataset),
        doses(profile, dataset, first),
        grid(profile, dataset, first, (*published.CUMULATIVE, *published.PARTIAL, "on_demand_l2")),
        *(runs(name, **page, seeds=first) for name in ("extra_data", "table2")),
        grid(profile, dataset, three[1:], published.CUMULATIVE),
        doses(profile, dataset, three[1:]),
        grid(profile, dataset, seeds[3:], CLOSE),
        *(runs(name, **page, seeds=[seed]) for seed in three[1:] for name in ("extra_data", "table2", "table3")),
    ]
    listed = [job_with_all(run) for block in order for run in block] + comparator_jobs(profile)
    rest = grid(profile, dataset, three[1:], (*published.FIXATED, *published.PARTIAL, "on_demand_l2"))
    listed += [job_with_all(run) for run in rest]
    listed += [job_of(run) for run in ladder(profile, dataset, three) if run.overrides]  # else in the close contest
    first_of = {}
    for job in listed:
        first_of.setdefault(job.name, job)  # whose measurements are all there
    return list(first_of.values())


def by_network(runs: list[Experiment], network: str) -> list[Experiment]:
    """Return some runs as another network has them: with its numbers, and with what each run overrides."""
    return [
        Experiment.of(e.task, e.dataset, e.schedule, e.seed, e.profile, **(e.overrides | {"network": network}))
        for e in runs
    ]


def seeds_shown(seeds: list[int], dataset: str, train: bool) -> list[int]:
    """The seeds that a page was asked for; on faces, where it trains nothing, the campaign's if it has none of them."""
    asked = train or sets.parse(dataset)[0] != FACES or {*seeds} & {*SEEDS_OF_FACES}
    return seeds if asked else SEEDS_OF_FACES


def schedules_shown(dataset: str, train: bool) -> list[str]:
    """The paper's seven schedules; on faces, where a page trains nothing, the campaign's rules since 2017, too."""
    return [*published.SEVEN, *(() if train or sets.parse(dataset)[0] != FACES else NEWER)]


def of_faces(profile: str, dataset: str, seeds: list[int]) -> list[list[Experiment]]:
    """The campaign on faces in its blocks, the most telling first; no page shows a part of one.

    Equation 3 against equal shares; the cumulative schedules; each other k; the end of the rate; shares without order
    and without feedback; fixated models; the other schedules; what came after 2017, a rule a block, the one that needs
    specialists with them and last; two more seeds of the shares without order, which three had left open; long runs, of
    the first seed and of two more; and between these and what is before them the blocks of `today`, `composite` and
    `plateau`.
    """
    first, three, more, confounded = seeds[:1], seeds[:3], seeds[3:], dict.fromkeys(CONFOUNDED, CONTROLS)
    return [
        grid(profile, dataset, seeds, CLOSE),
        grid(profile, dataset, seeds, published.CUMULATIVE),
        *(doses(profile, dataset, seeds, [k]) for k in DOSES_OF_FACES),
        decayed(profile, dataset, three),
        [run for seed in three for run in every_task(confounded, "", dataset, profile, seed)],
        grid(profile, dataset, three, published.FIXATED),
        grid(profile, dataset, three, published.PARTIAL)
        + [Experiment.of("deblur", dataset, "hard_mining", seed, profile, batch_size=100) for seed in first],
        grid(profile, dataset, three, ["inverse_mse"]),
        grid(profile, dataset, three, ["group_dro"]),
        grid(profile, dataset, first, published.SPECIALISTS) + grid(profile, dataset, three, ["minimax_gap"]),
        [run for run in grid(profile, dataset, more, CONTROLS[:1]) if run.task in CONFOUNDED],
        *today(profile, dataset, seeds),
        composite(profile, dataset, seeds),
        *plateau(profile, dataset, seeds),
        longest(profile, dataset, first, CLOSE),
        longest(profile, dataset, three, (*CLOSE, "cumulative_curriculum")),
    ]


def today(profile: str, dataset: str, seeds: list[int]) -> list[list[Experiment]]:
    """The residual U-Net in three blocks: the close contest; other shares and fixated models; later rules."""
    three, unet = seeds[:3], {"network": "unet"}
    return [
        grid(profile, dataset, seeds, CLOSE, **unet),
        grid(profile, dataset, three, ["on_demand"], **unet, sharpness=4)
        + grid(profile, dataset, three, ("inverse_mse", *published.FIXATED), **unet),
        grid(profile, dataset, three, ("cumulative_curriculum", "second_moment"), **unet)
        + [Experiment.of("denoise", dataset, "edm", seed, profile, **unet) for seed in three],
    ]


def composite(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """The paper's network where the rules are told PSNR with the known pixels put back."""
    order = ((seeds, ["on_demand"]), (seeds[:1], published.SPECIALISTS), (seeds[:3], ["minimax_gap"]))
    return [
        Experiment.of(task, dataset, f"{name}_composite", seed, profile)
        for some, names in order
        for seed, name, task in product(some, names, paper.MASKED)
    ]


PLATEAU = (100, 300, 1000, 3000)  # steps of each of 100 epochs, so that shares are renewed equally often


def plateau(profile: str, dataset: str, seeds: list[int]) -> list[list[Experiment]]:
    """The narrow network until longer training gains little, a block a length; three seeds at the two long ones."""
    if profile != "reference":
        return []
    numbers = {"width": 8, "epochs": 100}
    return [
        [
            Experiment.of(task, dataset, "on_demand" if k else "rigid_joint", seed, profile, **numbers, **of)
            for seed, k, task in product(seeds[: 5 if steps < 1000 else 3], (0, 1, 4), ("denoise", "inpaint"))
            for of in [{"iterations": steps, "sharpness": k or 1}]
        ]
        for steps in PLATEAU
    ]


def recalibrated_runs(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """The runs whose networks are scored again with BatchNorm statistics of each level: three seeds."""
    return grid(profile, dataset, seeds[:3], recalibration.RECALIBRATED)


def longest(profile: str, dataset: str, seeds: list[int], names) -> list[Experiment]:
    """Some schedules at the ladder's last length and its larger width, of every task."""
    if profile not in RUNGS:
        return []
    widths, lengths = RUNGS[profile]
    return [replace(run, width=widths[-1], epochs=lengths[-1]) for run in grid(profile, dataset, seeds, names)]


def whole_blocks(profile: str, dataset: str, seeds: list[int], load=None) -> list[list[Experiment]]:
    """The blocks on faces of which every run is measured, as `load` says."""
    return [block for block in of_faces(profile, dataset, seeds) if block and all(map(load or results.load, block))]


def decayed(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """On-demand learning and the cumulative curriculum with other ends of the learning rate."""
    cases = product(DECAYS, seeds, ("on_demand", "cumulative_curriculum"), CONFOUNDED)
    return [Experiment.of(task, dataset, name, seed, profile, decay=decay) for decay, seed, name, task in cases]


def grid(profile: str, dataset: str, seeds: list[int], names, **numbers) -> list[Experiment]:
    """Some of the schedules of Table 1 and Figure 4, of every task; `numbers` differ from the profile's."""
    cases = product(seeds, names, paper.TASKS)
    return [Experiment.of(task, dataset, name, seed, profile, **numbers) for seed, name, task in cases]


def long_runs(profile: str, dataset: str) -> list[Experiment]:
    """The on-demand networks behind pictures and the command restore: trained longer, where the profile is short."""
    tasks = paper.TASKS if profile in pretrained.LONG else ()
    return [Experiment.of(task, dataset, "on_demand", 0, profile, **pretrained.LONG[profile]) for task in tasks]


def every_k(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """Rigid joint learning, Equation 3 and the other feedback of `doses`, of every task."""
    return grid(profile, dataset, seeds, CLOSE) + doses(profile, dataset, seeds)


def doses(profile: str, dataset: str, seeds: list[int], ks=()) -> list[Experiment]:
    """On-demand learning with other feedback: B_i ∝ 1/P_i^k; with all that the data set has, where no k is given."""
    ks = ks or (DOSES_OF_FACES if sets.parse(dataset)[0] == FACES else DOSES)
    cases = product(seeds, ks, paper.TASKS)
    return [Experiment.of(task, dataset, "on_demand", seed, profile, sharpness=k) for seed, k, task in cases]


def job_with_all(run) -> Job:
    """The job of one run, with whatever else is measured of it: on blocks, on photographs, to explain it."""
    if run.schedule in INPAINTERS:
        return context_encoder.job_of(run)
    if run.schedule == blocks.CLASSICAL:
        return blocks.classical_job(run)
    if (run.task, run.schedule, run.overrides) == ("inpaint", "on_demand", {}):
        return blocks.job_of(run)
    if run.schedule in gradients_and_pool.MEASURED and not run.overrides:
        return gradients_and_pool.job_of(run)
    faces = sets.parse(run.dataset)[0] == FACES
    if faces and not run.overrides and run in recalibrated_runs(run.profile, run.dataset, SEEDS_OF_FACES):
        work = 1.2 * run.trials * len(TESTED) * math.ceil(run.test_images / run.batch_size)  # batches forward
        return job_of(run, of_network(run, "recalibrated", recalibration.recalibrated, work))
    ours = denoising.our_systems(run.profile, run.dataset, run.seed) if run.dataset.endswith("-native") else {}
    systems = [system for system, experiment in ours.items() if experiment == run]
    return job_of(run, *(m for system in systems for m in on_db11(system, run.profile, run)))


def ladder(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """On-demand and rigid joint learning at several widths and lengths, the longest runs and a third schedule last."""
    widths, lengths = RUNGS.get(profile, ((), ()))
    close = ((task, schedule) for task in LADDER for schedule in CLOSE)
    return [
        Experiment.of(task, dataset, schedule, seed, profile, width=width, epochs=epochs)
        for epochs, seed, width, (task, schedule) in product(lengths, seeds, widths, close)
    ] + [
        Experiment.of(task, dataset, schedule, seed, profile, width=widths[-1], epochs=lengths[-1])
        for (task, schedule), seed in product([STRONGEST] if lengths else [], seeds)
    ]


def only(names: list[str], jobs: list[Job]) -> list[Job]:
    """The jobs with those measurements that go by `names`, or by paths below the root. Raises ParameterError."""

    def names_of(m: Measurement) -> set[str]:
        return {m.name, str(m.path.relative_to(files.root()))}

    known = sorted({name for job in jobs for m in job.measurements for name in names_of(m)})
    for name in names:
        if name not in known:
            raise ParameterError(f"only={name!r} is none of these runs{nearest(name, known)}")
    chosen = [replace(job, measurements=tuple(m for m in job.measurements if names_of(m) & {*names})) for job in jobs]
    return [job for job in chosen if job.measurements]


# Table 3 and Figure 6


def photographs_here(profile: str) -> bool:
    """Whether DB11 can be measured; the small profiles measure none of its eleven photographs."""
    return profile in WITH_DB11 and sets.is_here("db11")


def left_out(page: str, profile: str, dataset: str) -> str:
    """Lines on what the jobs of a page lack because photographs are not here; empty where they lack nothing."""
    if page.partition("-")[0] not in (*ON_DB11, "scorecard") or sets.parse(dataset)[0] == FACES:
        return ""
    without = {"db11": "Table 3 and Figure 6 are", "bsds500": "opponents of Table 3 that have to be trained are"}
    missing = [name for name in without if profile in WITH_DB11 and not sets.is_here(name)]
    command = "python -m odl data prepare"
    return "".join(f"{without[n]} left out, because {n} is not here: {command} {n}\n" for n in missing)


def comparator_jobs(profile: str) -> list[Job]:
    """The other systems on DB11, those of `denoising.SLOW` last; what learns is trained first where it has to be.

    Left out are those whose package, or the photographs that they learn on, are not here. Profile gpu, made for half
    an hour, has the noisy photographs alone.
    """
    if not photographs_here(profile):
        return []
    if profile == "gpu":
        return [job_on_db11(denoising.NOISY, profile)]
    learners = trained.LEARNERS if sets.is_here("bsds500") else ()
    systems = [denoising.NOISY, *(name for name, system in DENOISERS.items() if system.here() or name in learners)]
    return [job_on_db11(system, profile) for system in sorted(systems, key=denoising.SLOW.__contains__)]


def job_on_db11(system: str, profile: str) -> Job:
    """Everything that is measured of one system, after its training where its weights are not here."""
    job = Job(f"{profile}/db11/{system}", tuple(on_db11(system, profile)))
    if denoising.can_run(system) or not job.missing():
        return job
    run = trained.run_of(system)
    work = 3 * run.epochs * run.iterations
    weights = files.runs() / run.run_id / "weights.safetensors"
    training = Measurement(partial(results.place_of_weights, run), partial(trained.train, run), work, weights)
    return Job(job.name, (training, *job.measurements), run)


def on_db11(system: str, profile: str, ours: Experiment | None = None) -> list[Measurement]:
    """σ = 25 clipped and not, then the curves of Figure 6."""
    if not photographs_here(profile):
        return []
    curves = [(sigma, True, told) for _, told in denoising.curves_of([system]) for sigma in denoising.SPECTRUM]
    cases = [(25, False, None), (25, True, None), *curves]
    found = [denoising.Case(system, *case, profile=profile, ours=ours) for case in cases]
    each = {one.path: Measurement(one.load, one.run_or_load, DB11_WORK, one.path) for one in found}
    return list(each.values())
