"""What one GPU has measured: profile gpu on faces, at the paper's width and batch, beside the runs of the CPU."""

from collections import Counter
from itertools import chain, product

import numpy as np
from measured import NOT_MEASURED, PAIR, PROFILE, listed, markdown
from measured import load as load_of

from companion import judge
from companion.claims.predictions import beside
from companion.judge import number, plain
from companion.measure import gradients_and_pool
from companion.pages import dose
from companion.runs import catalogue
from odl import paper
from odl.experiment import PROFILES

FACES = f"{catalogue.FACES}-native"
SCALE = "gpu", FACES, catalogue.SEEDS_OF_FACES
CURRICULUM = "cumulative_curriculum"
CONTESTS = {
    "Equation 3 − equal shares": PAIR,
    "Cumulative curriculum − Equation 3": (CURRICULUM, PAIR[0]),
    "k = 4 − equal shares": (dose.NAMES[4], PAIR[1]),
}
RULES = {  # of those since 2017, what is trained there; the claim on each begins with its name
    "Group DRO − Equation 3": ("group_dro", PAIR[0]),
    "Shares as 1/MSE − equal shares": ("inverse_mse", PAIR[1]),
}
MEASURED = "device versions seeds wide margin sharp dose before moved opposite margins foretold hits words parts missed"


def load() -> judge.Measured:
    """The runs of `CONTESTS` on a GPU, as many seeds of the campaign as there are; a page names how many."""
    return dose.load(catalogue.grid(*SCALE, (*PAIR, CURRICULUM)) + catalogue.doses(*SCALE, [4]))


def load_rules() -> judge.Measured:
    """The runs of `RULES` on a GPU."""
    return dose.load(catalogue.grid(*SCALE, dict.fromkeys(chain(*RULES.values()))))


def margins(contests=CONTESTS, load=load) -> str:
    """Each contest on each task by the CPU's profile and by the GPU's, in dB."""
    rows, sets = [], {"CPU": (PROFILE, load_of(FACES)), "GPU": ("gpu", load())}
    for task, (device, (profile, m)) in product(paper.TASKS, sets.items()):
        found = [judge.gaps(m.runs, task, *pair) for pair in contests.values()]
        cells = [judge.estimate(gaps, "").replace(", ", ",\u00a0") if gaps else NOT_MEASURED for gaps in found]
        rows.append([plain(task), f"{PROFILES[profile]['width']}, {device}", *cells])
    return markdown(["Faces", "Width", *contests], rows)


def rules() -> str:
    """`RULES` as `margins` has them, and the judge's words beside those that we had written down."""
    m, said = load_rules(), []
    if not any(judge.gaps(m.runs, task, *pair) for task, pair in product(paper.TASKS, RULES.values())):
        return f"At the paper's width and batch, on a GPU, these rules are {NOT_MEASURED}."
    for row, title in product(beside(m, "gpu").dropna(subset="hit").itertuples(), RULES):
        if row.claim.startswith(title.partition(" − ")[0]):
            word = by_part(judge.compare(m, judge.on_tasks(*RULES[title])))
            said.append(f"{title} {word} (we had foretold *{row.word}*)")
    words = f"At the paper's width the judge's words are: {'; '.join(said)}." if said else ""
    seeds = {case: judge.gaps(m.runs, case[0], *RULES[case[1]]) for case in product(paper.TASKS, RULES)}
    seeds = {case: gaps for case, gaps in seeds.items() if gaps}
    before = "Two rules, each minus a schedule of the paper's, by mean PSNR, on the CPU and with the paper's width and "
    before += "batch on a GPU "
    before += f"({{doc}}`chapter 3 </book/feedback>`, {judge.count_seeds(seeds)} there), in dB:"
    return f"{before}\n\n{margins(RULES, load_rules)}\n\n{words}"


def moved(m: judge.Measured) -> str:
    """From the CPU's to the GPU's mean margin of the curriculum, on the tasks whose 95 % intervals lie apart."""
    found, before = [], load_of(FACES)
    for task in paper.TASKS:
        both = [judge.gaps(runs, task, CURRICULUM, PAIR[0]) for runs in (before.runs, m.runs)]
        if min(map(len, both)) >= judge.ENOUGH:
            (low, high), (new_low, new_high) = map(judge.interval, both)
            if high < new_low or new_high < low:
                old, new = map(np.mean, both)
                found.append(f"from {number(old)} to {number(new)} dB on {plain(task)}")
    return listed(found) if found else "apart nowhere"


def opposite(m: judge.Measured) -> str:
    """The contests on a GPU in which both scores are certain, and call different networks better."""
    found = []
    for (title, pair), task in product(CONTESTS.items(), paper.TASKS):
        scores = judge.gaps(m.runs, task, *pair), judge.error_gaps(m.runs, task, *pair)
        if min(map(len, scores)) >= judge.ENOUGH:
            (low, high), (other_low, other_high) = map(judge.interval, scores)
            if (low > 0 > other_high) or (high < 0 < other_low):
                found.append(f"{title}, {plain(task)}")
    return "; ".join(found) if found else "none"


def margin(m: judge.Measured) -> str:
    """Equation 3 against equal shares, with the judge's word, and whether the paper's margins lie above ours."""
    found, printed = dose.dose_against_margin(m, k=1), [judge.printed_margin(m, task) for task in paper.TASKS]
    ends = [numbers[2] for numbers in found.numbers.values() if len(numbers) > 1]  # from three seeds on
    above = len(ends) == len(paper.TASKS) and all(map(np.less, ends, printed))
    beside = f", and on every task the paper's margin, {judge.span(printed)}, lies above the interval" * above
    return f"Feedback (Equation 3) minus equal shares is {of_all(m, 1)}{beside}."


def of_all(m: judge.Measured, k: int) -> str:
    """Mean margins of a k over equal shares from task to task, with the judge's word where there are seeds enough."""
    found, pair = dose.dose_against_margin(m, k), (dose.NAMES[k], PAIR[1])
    seeds = {task: judge.gaps(m.runs, task, *pair) for task in paper.TASKS}
    word = by_part(found) if min(map(len, seeds.values())) >= judge.ENOUGH else "no word before the third seed"
    means = judge.span(mean for mean, *_ in found.numbers.values()) if found.numbers else NOT_MEASURED
    return f"{means} from task to task ({judge.count_seeds(seeds)}): {word}"


def facts() -> dict:
    """With what and on how much it was measured; the ends of the margins, and what was predicted of them."""
    m, ours, papers = load(), PROFILES["gpu"], PROFILES["paper"]
    images = [p["epochs"] * p["iterations"] * p["batch_size"] for p in (ours, PROFILES[PROFILE])]
    found = {"steps": f"{ours['epochs'] * ours['iterations']:,}", "images": f"{images[0] / images[1]:.0f}"}
    found |= {"rate": ours["learning_rate"], "rate_before": PROFILES[PROFILE]["learning_rate"]}
    pairs = {task: judge.paired(m.runs, task, *PAIR) for task in paper.TASKS}
    equal = catalogue.grid(*SCALE, PAIR[1:])
    rows = beside(judge.Measured(m.runs | gradients_and_pool.load_all(equal)), "gpu").dropna(subset="hit")
    hits, words = rows[rows.part != ""].hit, rows[rows.part == ""]
    parts = rows[(rows.part != "") & rows.claim.isin(words.claim)]
    if not all(pairs.values()) or hits.empty:
        return found | dict.fromkeys(MEASURED.split(), NOT_MEASURED)
    doses, before = (
        [100 * run.history[-1]["dose"] for run in judge.runs_of(runs, PAIR[0])]
        for runs in (m.runs, load_of(FACES).runs)
    )
    cards = Counter(run.provenance["device"] for run in m.runs.values())
    return found | {
        "device": listed(f"one {card}" for card in cards),
        "versions": listed(f"PyTorch {run.provenance['versions']['torch']}" for run in m.runs.values()),
        "seeds": judge.count_seeds(pairs),
        "wide": "On a GPU we trained on faces with the paper's width and batch, for "
        f"{found['steps']} of its {papers['epochs'] * papers['iterations']:,} steps. {margin(m)}",
        "margin": margin(m),
        "sharp": of_all(m, 4),
        "dose": f"{min(doses):.1f} to {max(doses):.1f} %",
        "before": f"{min(before):.1f} to {max(before):.1f} %" if before else NOT_MEASURED,
        "moved": moved(m),
        "opposite": opposite(m),
        "margins": len(CONTESTS) * len(paper.TASKS),
        "foretold": len(hits),
        "hits": "all of them" if hits.all() else f"{hits.sum()} of them",
        "words": f"{words.hit.sum()} of {len(words)}",
        "parts": f"{(parts.word == parts.found).sum()} of {len(parts)}",
        "missed": "; ".join(
            f"“{row.claim.rstrip('.')}”{f', {row.part}' * bool(row.part)}: foretold *{row.word}*, found "
            + (f"*{row.found}*" if row.found != judge.UNDECIDED else "it open")
            for row in [*words[words.word != words.found].itertuples(), *parts[parts.word != parts.found].itertuples()]
        )
        or "none",
    }  # fmt: skip


def by_part(found: judge.Verdict) -> str:
    """The judge's word; where it leaves a claim open, the words on its parts."""
    if found.word != judge.UNDECIDED:
        return f"*{found.told}{judge.GATED * found.gated}*"
    parts = {}
    for label, (_, word) in found.parts.items():
        parts.setdefault("open" if word == judge.UNDECIDED else f"*{word}*", []).append(label)
    each = [f"{word} on {listed(parts[word])}" for word in sorted(parts)]  # the open ones last
    return ", ".join(each) if {*parts} != {"open"} else "open"


TABLES = {"gpu-margins": margins, "gpu-rules": rules}
