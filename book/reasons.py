"""What chapters say beyond the paper's seven: whose scores count, why a curriculum leads, the rules since 2017.

All stand on faces, each where its block of the campaign is whole; until then a chapter says what is to be measured.
"""

import numpy as np
from measured import NOT_MEASURED, PAIR, listed, worlds

from companion import judge, published
from companion.claims import claims, predictions
from companion.pages import dose, table1
from companion.runs import catalogue
from odl import paper, rivals

MINIMAX, STATIC = "minimax_gap", "static_easy"
OPEN = "open"  # for every word that decides nothing
WHAT, PAIR_OF = "what", "pair"
CAUSES = {  # how a claim begins, or a pair beside the claims → its margin, and what each word says of the curriculum
    "The cumulative curriculum is ahead because": {
        WHAT: "its margin over on-demand − the same where the rate falls over the last two fifths",
        judge.REPRODUCED: "If the learning rate falls earlier, the curriculum's margin is smaller.",
        judge.EQUIVALENT: "If the learning rate falls earlier, the curriculum's margin changes by nothing that counts.",
        judge.REVERSED: "If the learning rate falls earlier, the curriculum's margin is larger.",
        OPEN: "Whether the curriculum's margin depends on when the learning rate falls is open.",
    },
    "At a constant rate": {
        WHAT: "its margin over on-demand",
        PAIR_OF: dose.CONTROLS["the same, constant rate"],
        judge.REPRODUCED: "Where the rate never falls, the curriculum leads, too.",
        judge.EQUIVALENT: "Where the rate never falls, the curriculum's lead is gone.",
        judge.REVERSED: "Where the rate never falls, the curriculum is behind.",
        OPEN: "Whether it leads where the rate never falls is open.",
    },
    "The cumulative curriculum's mean shares": {
        WHAT: "the shares alone − the curriculum",
        judge.REPRODUCED: f"Without its order, its shares are at most {judge.WITHIN:.2f} dB behind it.",
        judge.REVERSED: f"Without its order, its shares are more than {judge.WITHIN:.2f} dB behind it.",
        OPEN: f"Whether its shares, without its order, are at most {judge.WITHIN:.2f} dB behind it is open.",
    },
    "Leaning to the easy levels from": {
        WHAT: "the shares alone − equal shares",
        judge.REPRODUCED: "These shares alone beat equal ones.",
        judge.EQUIVALENT: "These shares alone are as good as equal ones.",
        judge.REVERSED: "These shares alone are worse than equal ones.",
        judge.MIXED: "These shares alone are better than equal ones by one score, worse by the other: *mixed*.",
        OPEN: "Whether these shares alone beat equal ones is open.",
    },
}
LEAN = {  # of feedback turned round: does the mean gain?
    "Leaning to the easy levels instead": {
        WHAT: "k = −4 minus equal shares",
        judge.REPRODUCED: "On faces, leaning to the easy levels with k = −4 beats equal shares.",
        judge.EQUIVALENT: f"On faces, every change by k = −4 stays within ±{judge.WITHIN:.2f} dB.",
        judge.REVERSED: "On faces, leaning to the easy levels with k = −4 is worse than equal shares.",
        OPEN: "Whether leaning to the easy levels with k = −4 beats equal shares on faces is open.",
    },
    "The more a batch leans to the hard levels": {
        WHAT: "slope on the dose, mean of the four tasks",
        judge.REPRODUCED: "There, the more a batch leans to the hard levels, the lower the mean PSNR.",
        judge.REVERSED: "There, the more a batch leans to the hard levels, the higher the mean PSNR.",
        judge.MIXED: "There, a lean to the hard levels moves PSNR and squared error the same way: what is worse by one "
        "score is better by the other, *mixed*.",
        OPEN: "Whether a lean to the hard levels lowers the mean PSNR there is open.",
    },
}
WHOSE = {  # of feedback: does it matter whose scores it follows?
    "A network's own feedback": {
        WHAT: "own − recorded",
        judge.REPRODUCED: "The network's own scores do better than recorded shares.",
        judge.EQUIVALENT: "Recorded shares do as well: whose scores made them does not matter there.",
        judge.REVERSED: "Recorded shares do better than the network's own scores.",
        OPEN: "Whether the network's own scores do better than recorded shares is open.",
    },
}


LATER = {  # of minimax training: does it reach what it is made for, and at what price?
    "Minimax training is less far": {
        WHAT: "Equation 3's − its own",
        judge.REPRODUCED: "Its worst gap is smaller than Equation 3's.",
        judge.EQUIVALENT: "Its worst gap is as large as Equation 3's.",
        judge.REVERSED: "Its worst gap is larger than Equation 3's.",
        judge.MIXED: "Its worst gap is smaller than Equation 3's over all pixels and larger with the known ones put "
        "back.",
        OPEN: "Whether its worst gap is smaller than Equation 3's is open.",
    },
    "Minimax training has the higher": {
        WHAT: "its margin over Equation 3",
        judge.REPRODUCED: "Its mean PSNR is higher.",
        judge.EQUIVALENT: "Its mean PSNR is alike.",
        judge.REVERSED: "Its mean PSNR is lower.",
        judge.MIXED: "Its mean PSNR and its squared error tell opposite things: the judge says *mixed*.",
        OPEN: "Whether its mean PSNR is higher is open.",
    },
}


def causes(asked=CAUSES) -> list[tuple[str, str, judge.Verdict]]:
    """What is measured of `asked` on faces: a sentence, what its margin is, and the verdict that it stands on."""
    faces, found = worlds().get("faces"), []
    for start, sentences in asked.items() if faces else ():
        if pair := sentences.get(PAIR_OF):
            verdict = judge.compare(faces, claims.on_confounded(*pair))
        else:
            [claim] = [claim for claim in claims.CLAIMS if claim.claim.startswith(start)]
            verdict = claim.measure(faces)
        if verdict.due:
            found.append((" ".join(by_part(sentences, verdict)), sentences[WHAT], verdict))
    return found


def by_part(sentences: dict, verdict: judge.Verdict) -> list[str]:
    """The sentence on a verdict; where its parts differ, one for each word that they have, with their tasks."""
    tasks = {}
    for task, (_, word) in verdict.parts.items():
        tasks.setdefault(sentences.get(word.removesuffix(judge.GATED), sentences[OPEN]), []).append(task)
    if len(tasks) == 1:
        return [*tasks]
    undecided = tasks.pop(sentences[OPEN], [])
    *most, last = [f"{sentence.removesuffix('.')} on {listed(names)}." for sentence, names in tasks.items()]
    return [*most, last.removesuffix(".") + f"; on {listed(undecided)} that is open." if undecided else last]


def by_task(verdict: judge.Verdict) -> str:
    """Each task's margin, in words."""
    return "; ".join(f"{task} {verdict.parts[task][0]}" for task in verdict.numbers)


def in_numbers(sentence: str, what: str, verdict: judge.Verdict) -> str:
    """The sentence, and behind it the margin of each task, or what was measured of all together."""
    margins = verdict.measured
    if "" not in verdict.parts:
        margins = by_task(verdict)
    return f"{sentence.removesuffix('.')} ({what}: {margins})."


def whose() -> tuple[str, str]:
    """Whether it matters whose scores feedback follows: in a sentence, and in the same with its numbers."""
    if not (found := causes(WHOSE)):
        return (f"What came of it is {NOT_MEASURED}.",) * 2
    return found[0][0], in_numbers(*found[0])


def lean() -> tuple[str, str]:
    """Whether a lean to the easy levels pays on faces: in two sentences, and in the same with their numbers."""
    if not (found := causes(LEAN)):
        return (f"On faces, feedback turned round and about four times as strong (k = −4) is {NOT_MEASURED}.",) * 2
    return " ".join(sentence for sentence, *_ in found), " ".join(in_numbers(*each) for each in found)


def why() -> str:
    """Why the cumulative curriculum leads, as far as it is known, in a few sentences."""
    if found := [sentence for sentence, *_ in causes()]:
        tasks = listed([judge.plain(task) for task in catalogue.CONFOUNDED])
        first = f"We took the cumulative curriculum apart on faces, on {tasks}, where it leads on scenes."
        return " ".join([first, *found, divided()]).strip()
    return (
        "Why the cumulative curriculum leads where it does is open: its last level enters while the learning rate "
        "falls, and that might be part of it."
    )


def divided() -> str:
    """Where shares and order certainly add to the curriculum's margin over equal shares: what each brings."""
    faces, said = worlds().get("faces", judge.Measured()), []
    for task in catalogue.CONFOUNDED:
        both = [judge.gaps(faces.runs, task, *pair) for pair in ((STATIC, PAIR[1]), ("cumulative_curriculum", STATIC))]
        if min(map(len, both)) >= judge.ENOUGH and min(judge.interval(gaps)[0] for gaps in both) > 0:
            shares, order = (judge.signed(np.mean(gaps)) for gaps in both)
            said.append(f"{shares} on {judge.plain(task)}, and the order {order} more")
    return (
        f"Of the lead over equal shares the shares alone bring {listed(said)}; the intervals lie above 0."
        if said
        else ""
    )


def curriculum() -> str:
    """The sentences of `causes` with their numbers, and the drawing of the runs behind them."""
    found = causes()
    if not found:
        return f"Which of the three it is, runs on faces will show; they are {NOT_MEASURED}."
    weights = rivals.static_easy(0, None, paper.N_LEVELS)
    shares = [f"{share:.0f}" for share in 100 * weights / weights.sum()]
    lines = [
        f"On faces we took it apart. Its *shares* alone are its means over training, {listed(shares)} % for levels 1 "
        "to 5, from the first step on and in no order.\n"
    ]
    lines += [f"- {in_numbers(*cause)}" for cause in found]
    drawing = """\
```{figure} /generated/controls.svg
:name: fig-controls
:alt: For two tasks the differences between schedules that have the curriculum's shares, its order or its rate.
:class: odl-fit

Differences in mean PSNR on faces, a colour a task, with 95 % intervals; the grey band is ±0.10 dB.
```"""
    return "\n".join(lines) + f"\n\n{divided()}\n\n{drawing}"


def rules() -> list[str]:
    """Those since 2017 that are measured on faces."""
    faces, first = worlds().get("faces"), next(iter(paper.TASKS))
    return [rule for rule in catalogue.NEWER if faces and judge.paired(faces.runs, first, rule)]


def scores(task: str) -> dict[str, tuple]:
    """Rule → by how many dB it is ahead of equal shares on faces, seed by seed: in the mean of the levels, and in the
    gap to a specialist on the level where that is largest."""
    faces, found = worlds().get("faces", judge.Measured()), {}
    for name in (PAIR[0], *published.CUMULATIVE, *rules(), STATIC):
        pairs = judge.paired(faces.runs, task, PAIR[1], name)
        both = [[(judge.score(run), table1.gap_in(faces, task, run)) for run in pair] for pair in pairs]
        both = [(own[0] - equal[0], equal[1] - own[1]) for equal, own in both]
        both = [margins for margins in both if not np.isnan(margins).any()]
        if both:
            found[name] = tuple(zip(*both, strict=True))
    return found


def facts() -> dict:
    """Of minimax training: where equal shares need it, what it gives that level, and what comes of it."""
    found = causes(LATER)
    if len(found) < len(LATER) or len(found[0][-1].numbers) < len(paper.TASKS):
        names = ["behind", "level", "given", "sentences", "price", "static", "static_margins", "said"]
        return dict.fromkeys(names, NOT_MEASURED)
    faces, on, levels, shares, larger = worlds()["faces"], [], set(), [], []
    for task in paper.TASKS:
        pairs = judge.paired(faces.runs, task, PAIR[1], MINIMAX)
        gaps = np.nanmean([table1.gaps_in(faces, task, run) for run, _ in pairs], axis=0)
        levels.add(gaps.argmax() + 1)
        shares += [np.mean([epoch["allocation"][gaps.argmax()] for epoch in run.history]) for _, run in pairs]
        on.append(f"{gaps.max():.2f} dB on {judge.plain(task)}")
        errors = judge.error_gaps(faces.runs, task, MINIMAX, PAIR[0])
        if len(errors) >= judge.ENOUGH and judge.interval(errors)[1] < 0:
            larger.append(judge.plain(task))
    (first, _, nearer), (second, *_) = found
    away = " and so turns the other way than Equation 3" if levels == {1} and min(shares) > 20 else ""
    return {
        "behind": listed(on),
        "level": f"level {listed(sorted(levels))}",
        "given": f"{min(shares):.0f} to {max(shares):.0f} % of all images{away}",
        "sentences": f"{first} {second}",
        "price": f"Its squared error is certainly larger than Equation 3's on {listed(larger or ['no task'])}.",
        "static": without_scores(faces, numbers=False),
        "static_margins": without_scores(faces, numbers=True),
        "said": "Of the rules since 2017 minimax gap gives a level more images the further it is behind a specialist, "
        "which trained on that level alone; the *worst gap* is how far a network is behind on the level where it is "
        f"furthest. {first.removesuffix('.')}, on faces by "
        f"{judge.span(db for db, *_ in nearer.numbers.values())} (*{nearer.told}*).",
    }


def without_scores(faces: judge.Measured, numbers: bool) -> str:
    """What shares that never change make of the worst gap; what is typed here a test looks up in the results."""
    pairs = (STATIC, PAIR[0]), (MINIMAX, STATIC)
    static, minimax = (by_task(table1.narrower(faces, *pair)) for pair in pairs)
    if not minimax:
        return ""
    return (
        f"Shares that never change, the curriculum's means, make the worst gap smaller, too{f' ({static})' * numbers}; "
        f"whether minimax gap goes beyond them is open{f' ({minimax})' * numbers}. "
        "We asked this when we knew the rest, so we do not judge it."
    )


def foretold(start: str, verdict: judge.Verdict) -> str:
    """What we had written of a claim, and where the mean of its tasks lies."""
    [row] = [row for row in predictions.load().itertuples() if row.claim.startswith(start) and not row.part]
    mean = np.mean([db for db, *_ in verdict.numbers.values()])
    lies = "inside" if row.low <= mean <= row.high else "outside"
    ends = f"{judge.number(row.low)} to {judge.number(row.high)} dB"
    return f"We had foretold *{row.word}*, {ends}; the mean of the tasks, {judge.signed(mean)}, lies {lies}."


def later() -> str:
    """Both scores of the rules since 2017, in a drawing and in the judge's words."""
    now = facts()
    if now["level"] == NOT_MEASURED:
        left = [published.LATER[rule] for rule in catalogue.NEWER if rule not in rules()]
        return f"Yet {NOT_MEASURED}: {listed([*left, 'how far each rule is behind a specialist on its worst level'])}."
    judged = zip(LATER, causes(LATER), strict=True)
    lines = "\n".join(f"- {in_numbers(*cause)}\n  {foretold(start, cause[-1])}" for start, cause in judged)
    return f"""\
The *worst gap* is how far a network is behind a specialist on the level where it is furthest.
With equal shares that is {now["level"]}, by {now["behind"]}.
Minimax gap gives it {now["given"]}.

```{{figure}} /generated/scores.svg
:name: fig-scores
:alt: For each task the rules as points: to the right the mean PSNR, upwards the worst gap, both against equal shares.
:class: odl-fit

Both scores of each rule on faces, minus those of equal shares at the same seed: means with 95 % intervals.
To the right the mean PSNR is higher, and upwards the worst gap is smaller.
The grey cross is ±0.10 dB, and each task has axes of its own.
One set of specialists serves all seeds; what another would change is in no interval.
```

{lines}
- {now["price"]}

{f"Does a smaller worst gap need scores? {now['static_margins']}" * bool(now["static"])}"""


TABLES = {"curriculum": curriculum, "later": later}
