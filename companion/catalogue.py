"""Every run of the paper, in an order that makes each table useful early (Sec. 6, Supp. C–H).

`python -m companion reproduce`, `python -m companion plan` and the Snakefile share this list.
"""

from dataclasses import replace
from functools import partial

from companion import blocks, denoising, pilot
from companion.comparators import DENOISERS, INPAINTERS, available, context_encoder, trained
from companion.sweep import Job, Measurement, job_of
from odl import paper, pretrained
from odl.data import sets
from odl.experiment import Experiment
from odl.machine import files
from odl.parameters import ParameterError, known_dataset, nearest

EXTRA_DATA = ("on-demand, half", "rigid joint, half", "rigid joint, all")  # the order of experiment.extra_data


def extra_data_sizes(dataset: str) -> tuple[int, int]:
    """Half and all of the training images for the test of Sec. 6.6."""
    # Paper: 100,000 and 200,000 faces of CelebA; here: 162,770, all that its official partition trains on,
    # and half and all of any other set, because none has as many.
    known_dataset(dataset)
    known = {"celeba": (100_000, 162_770), "sun397": (50_000, 100_000), "bsds500": (200, 400), "demo": (4, 9)}
    base = sets.parse(dataset)[0]
    whole = 0 if base in known else len(sets.list_images(dataset, sets.find(dataset))["train"])
    return known.get(base, (max(1, whole // 2), whole))


def extra_data_experiments(task: str, dataset: str, profile: str, seeds: list[int]) -> list[Experiment]:
    """Sec. 6.6: on-demand and rigid joint learning with half of the training images, rigid joint with all of them."""
    half, whole = extra_data_sizes(dataset)
    standard = sets.DATASETS.get(sets.parse(dataset)[0], {}).get("train_images", whole)
    runs = (("on_demand", half), ("rigid_joint", half), ("rigid_joint", whole))
    return [
        Experiment.of(task, dataset, name, seed, profile, train_images=0 if n == standard else n)
        for seed in seeds
        for name, n in runs
    ]


CLOSE = ("on_demand", "rigid_joint")  # what seeds have to tell apart first
CUMULATIVE = ("cumulative_curriculum", "cumulative_anti_curriculum")
FAR = ("staged_curriculum", "staged_anti_curriculum", "hard_mining")  # large effects
DOSES = (4, -1)  # the k of 1/P^k beside Equation 3's 1 and rigid joint's 0
LADDER = ("inpaint", "denoise")
RUNGS = {  # profile → widths and epochs of the ladder; its last length takes longer than everything before it
    "smoke": ((4, 8), (1, 2, 4)),
    "demo": ((8, 16), (4, 20, 120)),
    "reference": ((16, 32), (10, 50, 300)),
}
DB11_WORK = 1765  # batches of windows at stride 3 in the eleven photographs


def jobs(profile: str, dataset: str, seeds: list[int]) -> list[Job]:
    """Every job of the paper on one data set, in blocks, the most telling first.

    The close contest and the fixated models of the first seed, the close contest of every other seed, the long
    all-rounders and Table 3's denoisers, the cumulative schedules, those that differ much, the pilot, doses, half the
    data, Table 2, the other denoisers of Figure 6; then what is left of the second and third seed, and the ladder. How
    many seeds a contest gets is fixed here, before any is looked at: five for the close one, three for the others.
    """
    first, three = seeds[0], seeds[:3]
    tables = grid(profile, dataset, first, (*CLOSE, *paper.FIXATED))
    for seed in seeds[1:]:
        tables += grid(profile, dataset, seed, CLOSE)
    tables += [job_of(e) for e in all_rounders(profile, dataset)]
    tables += table3_jobs(profile, dataset)
    for seed in three:
        tables += grid(profile, dataset, seed, CUMULATIVE)
    tables += grid(profile, dataset, first, FAR)
    tables += [job_of(e) for e in pilot.runs(dataset).values()] if profile == "reference" else []
    for seed in three:
        tables += [job_of(e) for e in doses(profile, dataset, seed)]
    for seed in three:
        tables += [job_of(e) for e in extra_data_experiments("inpaint", dataset, profile, [seed])]
        tables += table2_jobs(profile, dataset, seed)
    tables += comparator_jobs(profile)
    for seed in three[1:]:
        tables += grid(profile, dataset, seed, (*paper.FIXATED, *FAR))
    tables += [job_of(e) for e in ladder(profile, dataset, three) if e.overrides]  # without one: in the close contest
    return list({job.name: job for job in tables}.values())


def all_rounders(profile: str, dataset: str) -> list[Experiment]:
    """The on-demand networks behind pictures and the command restore: trained longer, where the profile is short."""
    tasks = paper.TASKS if profile in pretrained.LONG else ()
    return [Experiment.of(task, dataset, "on_demand", 0, profile, **pretrained.LONG[profile]) for task in tasks]


def doses(profile: str, dataset: str, seed: int) -> list[Experiment]:
    """On-demand learning with other feedback: B_i ∝ 1/P_i^k."""
    return [Experiment.of(t, dataset, "on_demand", seed, profile, sharpness=k) for k in DOSES for t in paper.TASKS]


def ladder(profile: str, dataset: str, seeds: list[int]) -> list[Experiment]:
    """On-demand and rigid joint learning at several widths and lengths, the longest runs last."""
    widths, lengths = RUNGS.get(profile, ((), ()))
    return [
        Experiment.of(task, dataset, schedule, seed, profile, width=width, epochs=epochs)
        for epochs in lengths
        for seed in seeds
        for width in widths
        for task in LADDER
        for schedule in CLOSE
    ]


def only(names: list[str], jobs: list[Job]) -> list[Job]:
    """The jobs with those of their measurements that go by `names`, or by paths below the root.

    Raises ParameterError for an unknown one.
    """
    names_of = {id(m): {m.name, str(m.path.relative_to(files.root()))} for job in jobs for m in job.measurements}
    known = sorted(set().union(*names_of.values()))
    for name in names:
        if name not in known:
            raise ParameterError(f"only={name!r} is none of these runs{nearest(name, known)}")
    chosen = [
        replace(job, measurements=tuple(m for m in job.measurements if names_of[id(m)] & {*names})) for job in jobs
    ]
    return [job for job in chosen if job.measurements]


# The pages of the book

GRID = {  # schedules that a page shows, of every task or of its own
    "table1": tuple(paper.SCHEDULES),
    "fixation": ("on_demand", *paper.FIXATED),
    "allocation": ("on_demand",),
    "qualitative": ("on_demand", "rigid_joint", *paper.FIXATED),
}


def shown_on(page: str, jobs: list[Job]) -> list[Job]:
    """The jobs whose results a page of the book shows, all for a page that is not known here, as for the scorecard.

    `table1-deblur` is the notebook `table1` with a task.
    """
    notebook, _, task = page.partition("-")

    def shows(job) -> bool:
        e = job.experiment
        if notebook in ("table3", "db11_spectrum", "gallery"):
            return e is None or sets.parse(e.dataset)[1] == 0
        if e is None or sets.parse(e.dataset)[1] == 0:
            return False
        if notebook == "extra_data":
            return e in extra_data_experiments("inpaint", e.dataset, e.profile, [e.seed])
        if notebook == "dose":
            changed = {*doses(e.profile, e.dataset, e.seed), *ladder(e.profile, e.dataset, [e.seed])}
            return e in changed or e.schedule in CLOSE and not e.overrides
        if notebook == "table2":
            return e.schedule in INPAINTERS or e == inpainter(e.profile, e.dataset, e.seed)
        if notebook == "applications":
            return e == inpainter(e.profile, e.dataset, e.seed)
        return e.schedule in GRID[notebook] and not e.overrides and task in ("", e.task)

    beyond_grid = "table2 table3 db11_spectrum gallery extra_data applications dose"
    known = {*GRID, *beyond_grid.split()}
    return [job for job in jobs if shows(job)] if notebook in known else jobs


def inpainter(profile: str, dataset: str, seed: int) -> Experiment:
    return Experiment.of("inpaint", dataset, "on_demand", seed, profile)


def grid(profile: str, dataset: str, seed: int, schedules) -> list[Job]:
    """Schedules × tasks; the on-demand inpainter is measured on the blocks of Table 2 too."""
    runs = [Experiment.of(task, dataset, schedule, seed, profile) for schedule in schedules for task in paper.TASKS]
    return [blocks.job_of(e) if e == inpainter(profile, dataset, seed) else job_of(e) for e in runs]


def table2_jobs(profile: str, dataset: str, seed: int) -> list[Job]:
    """The context encoders."""
    ours = inpainter(profile, dataset, seed)
    return [context_encoder.job_of(context_encoder.run_of(method, ours)) for method in INPAINTERS]


# Table 3 and Figure 6


def photographs_here(profile: str) -> bool:
    """Whether DB11 can be measured; the small profiles measure none of its eleven photographs."""
    return profile in ("reference", "paper") and is_here("db11")


def is_here(dataset: str) -> bool:
    try:
        return bool(sets.find(dataset))
    except sets.DataError:
        return False


def table3_jobs(profile: str, dataset: str) -> list[Job]:
    """Our two denoisers at native resolution, each with its numbers on DB11 where that is here."""
    ours = denoising.our_systems(profile, f"{sets.parse(dataset)[0]}-native")
    return [job_of(e, *on_db11(system, profile, ours)) for system, e in ours.items()]


def comparator_jobs(profile: str) -> list[Job]:
    """The other systems on DB11, those of `denoising.SLOW` last; what learns is trained first where it has to be.

    Left out are those whose package, or the photographs that they learn on, are not here.
    """
    if not photographs_here(profile):
        return []
    systems = [denoising.NOISY, *(system for system in DENOISERS if available(system) or can_learn(system))]
    return [job_on_db11(system, profile) for system in sorted(systems, key=denoising.SLOW.__contains__)]


def can_learn(system: str) -> bool:
    return system in trained.LEARNERS and is_here(sets.parse(trained.run_of(system).dataset)[0])


def job_on_db11(system: str, profile: str) -> Job:
    """Everything that is measured of one system, after its training where its weights are not here."""
    job = Job(f"{profile}/db11/{system}", tuple(on_db11(system, profile)))
    if denoising.can_run(system, {}) or not job.missing():
        return job
    run = trained.run_of(system)
    work = 3 * run.epochs * run.iterations
    weights = files.runs() / run.run_id / "weights.safetensors"
    training = Measurement(partial(weights_or_none, system), partial(trained.train, run), work, weights)
    return Job(job.name, (training, *job.measurements), run)


def weights_or_none(system: str) -> bool | None:
    return trained.is_trained(system) or None


def on_db11(system: str, profile: str, ours=None) -> list[Measurement]:
    """σ = 25 clipped and not, then the curves of Figure 6."""
    if not photographs_here(profile):
        return []
    curves = [
        (sigma, True, told if told != sigma else None)
        for _, told in denoising.curves_of([system])
        for sigma in denoising.SPECTRUM
    ]
    given = {"profile": profile, "ours": (ours or {}).get(system)}
    cases = dict.fromkeys([(25, False, None), (25, True, None), *curves])
    found = [denoising.Measurement(system, *case, **given) for case in cases]
    return [Measurement(one.load, one.run_or_load, DB11_WORK, one.path) for one in found]
