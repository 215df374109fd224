"""Every claim of the paper and every question asked here: what the paper has, the test, and what the judge says.

Nothing is trained: what is not on disk reads "to be measured".
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import pandas as pd

from companion import judge, published
from companion.data import sets
from companion.judge import EQUIVALENCE, LARGE_EFFECT, Decision, Evidence, compare, on_tasks, plain
from companion.measure import blocks, denoising, gradients_and_pool, recalibration
from companion.pages import allocation, db11_spectrum, dose, extra_data, fixation, table1, table2, table3, today
from companion.pages.extra_data import OURS_HALF, RIGID_ALL, RIGID_HALF
from companion.pages.table2 import CENTRE, RANDOM
from companion.runs import catalogue
from companion.training import results
from companion.words import MAX_NAMED_PARTS, describe, estimate, qualify, signed, span
from odl import paper

CORE, SECONDARY, ASKED, BUILT_IN = KINDS = ("Core", "Secondary", "Asked here", "By construction")
NOT_ON_FACES, FACES_ALONE = ("Table 2", "Table 3", "Fig. 6"), "On faces"
JUDGED_BY_RULE_3 = ("today's network", "why")  # places of claims that were judged by rule 3 from the start
UNPLANNED_ON_FACES = ("PSNR is a better feedback", "Twice the images", "On-demand learning with half")
COLUMNS = ["number", "kind", "place", "claim", "paper", "measured", "parts", "test", "verdict", "told", "before"]


def judge_claims(evidence: Evidence) -> dict[str, Decision]:
    """Return claim → the decision on it; each is asked once."""
    return {claim.claim: claim.decide(evidence) for claim in CLAIMS}


def claims_table(decisions: dict[str, Decision], dataset: str = "") -> pd.DataFrame:
    """Return a row per claim, with `COLUMNS`: verdict is one of `judge.VERDICTS`, told says more of it, before is rule
    2's."""
    rows = []
    for number, claim in asked_of(dataset):
        found = decisions[claim.claim]
        value = "; ".join(filter(None, (describe(found), judge.BELOW_INPUT.strip(" ()") * found.below)))
        parts = [f"{label} {estimate(p.values, found.unit)}: {p.full_word}" for label, p in found.parts.items()]
        differ = len({part.full_word for part in found.parts.values()}) > 1
        each = "; ".join(parts) if len(parts) > MAX_NAMED_PARTS or differ else ""
        before = "" if claim.place.endswith(JUDGED_BY_RULE_3) else found.by_rule2.published_word
        row = number, claim.kind, claim.place, claim.claim, claim.paper, value, each, claim.test
        rows.append((*row, found.published_word, qualify(found), before))
    return pd.DataFrame(rows, columns=COLUMNS)


def asked_of(dataset: str) -> list[tuple[int, "Claim"]]:
    """Return the claims that a data set can answer, with their numbers, kind by kind.

    Faces are not asked what the paper measures on blocks or on the eleven photographs, nor what their campaign does not
    train; any other set is not asked what faces alone can answer.
    """
    faces = sets.parse(dataset)[0] == catalogue.FACES
    never, unplanned = (NOT_ON_FACES, UNPLANNED_ON_FACES) if faces else ((FACES_ALONE,), ())
    asked = [
        (number, claim)
        for number, claim in enumerate(CLAIMS, 1)
        if not claim.place.startswith(never) and not claim.claim.startswith(unplanned)
    ]
    return sorted(asked, key=lambda row: KINDS.index(row[1].kind))


def load_evidence(profile: str, dataset: str, seeds: list[int]) -> Evidence:
    """Return every result that a claim needs and that is here; on faces those of whole blocks alone."""
    short = profile != "paper"  # any other has 1.3 % of the paper's training images at most, in Table 3 of gpu 8 %
    if sets.parse(dataset)[0] == catalogue.FACES:
        once = cache(results.load_result)  # whether a block is whole, its runs themselves tell
        whole = sum(catalogue.whole_blocks(profile, dataset, seeds, once), [])
        runs = dose.load_runs(whole, once).runs | gradients_and_pool.load_all(whole)
        blocks = catalogue.runs_of_blocks(profile, dataset, seeds)
        for block in (blocks[name] for name in blocks if name.startswith("E3-")):
            runs |= recalibration.load_all(block)
        return Evidence(runs, short=short)
    grid = catalogue.grid(profile, dataset, seeds, (*published.SEVEN, *published.FIXATED, "on_demand_l2"))
    runs = dose.load_runs([*grid, *catalogue.doses(profile, dataset, seeds)]).runs
    extra = extra_data.load_runs("inpaint", dataset, profile, seeds)
    runs |= {("inpaint", name, run.experiment["seed"]): run for name, found in extra.items() for run in found}
    for run in catalogue.runs("table2", "inpaint", dataset, profile, seeds):
        runs["blocks", run.schedule, run.seed] = catalogue.measurements_of(run)[-1].load()
    runs |= gradients_and_pool.load_all(grid)
    ours = denoising.our_runs(profile, dataset, seeds)
    on_db11 = {"dataset": "db11", "profile": profile, "ours": ours, "measure": False}
    return Evidence(
        {key: result for key, result in runs.items() if result},
        table3.denoisers_table(denoising.OUR_SYSTEMS, **on_db11),
        db11_spectrum.curves_table(db11_spectrum.CURVES, **on_db11),
        short=short,
    )


# What the paper has


def paper_gaps(one: str, other: str, tasks=tuple(published.TABLE1)) -> list[float]:
    """Return published differences in PSNR of two schedules on CelebA and SUN397."""
    return [published.TABLE1[task][one][k][1] - published.TABLE1[task][other][k][1] for task in tasks for k in (0, 1)]


def paper_margins(task: str) -> list[float]:
    """Return the published margin over the closest rival in Table 1, on CelebA and SUN397."""
    rows = published.TABLE1[task]
    return [min(rows["on_demand"][k][1] - rows[rival][k][1] for rival in table1.RIVALS) for k in (0, 1)]


NO_NUMBER, CURVES_ONLY = "no number", "curves only"
FILLED, *ENCODERS = ([psnr for _, psnr in published.TABLE2[m]] for m in ("on_demand", CENTRE, RANDOM))  # two blocks
TABLE1_L2, TABLE1_PSNR = (  # schedule → number, for each task on CelebA and SUN397
    [{s: row[k][column] for s, row in rows.items()} for rows in published.TABLE1.values() for k in (0, 1)]
    for column in (0, 1)
)
ERROR_CHANGES = [100 * (row["on_demand"] / row["rigid_joint"] - 1) for row in TABLE1_L2]  # %
GROUP_MARGINS = [min(row[s] for s in published.JOINT) - max(row[s] for s in published.PARTIAL) for row in TABLE1_PSNR]
WON, WON_BY_FIXATED = map(table3.images_won, ("on_demand", "fixated"))
DB11_LEADS = "DB11, noise not clipped, this network − the best published number of an image: "


def absolute(decide: Callable, **how) -> Callable:
    """Return what decides a claim on an absolute PSNR, from what would decide it if it were none."""
    return lambda evidence: judge.absolute(evidence, decide(evidence, **how))


def contest(one: str, other: str, tasks=tuple(paper.AS_SHIPPED), **how) -> Callable:
    """Return what decides a claim that one schedule is ahead of another in mean PSNR, on every task or on some."""
    return partial(compare, pairs=on_tasks(one, other, tasks), **how)


def contest_today(one: str, other: str, tasks=tuple(paper.AS_SHIPPED)) -> Callable:
    """Return `contest` of two schedules of today's network."""
    return contest(one + today.OF_UNET, other + today.OF_UNET, tasks)


class Claim(NamedTuple):
    """A statement of the paper; `test` says in words how `decide` decides it."""

    kind: str
    place: str
    claim: str
    paper: str
    test: str
    decide: Callable[[Evidence], Decision]


# fmt: off
CLAIMS = [
    Claim(CORE, "Supp. E" if task == "denoise" else "Table 1",
          f"{plain(task).capitalize()}: on-demand learning is the best of seven schedules.",
          f"{span(paper_margins(task))} over the closest rival",
          "on-demand − each of six rivals, mean PSNR, levels 1–6",
          partial(table1.judge_best_of_seven, task=task))
    for task in published.TABLE1
]
CLAIMS += [Claim(*row) for row in [
    (CORE, "Fig. 4, Supp. D",
     "Fixation: trained at one severity, a model is good there and falls behind the on-demand network elsewhere.",
     CURVES_ONLY,
     "four tasks, easy and hard: on-demand − fixated, levels 1–6, and fixated − on-demand at its own severity, at most "
     f"{EQUIVALENCE:.2f} dB behind; inpainting inside the hole",
     fixation.judge_fixation),
    (ASKED, "Table 3", "The on-demand network is close to the network trained for σ = 25 alone.",
     "30.40 and 30.54 dB",
     f"our reading of two columns: DB11, noise not clipped, at most {table3.MAX_BEHIND:.2f} dB behind, twice the "
     "difference of what the paper prints; it does not say close",
     table3.judge_specialist),
    (CORE, "Sec. 6.6",
     "Moving the batch towards the hard levels matters: at four times Equation 3's dose it beats equal shares.",
     NO_NUMBER,
     "our test, the paper has none: Equation 3 with 1/P⁴, about four times its dose, − equal shares, every task",
     dose.judge_dose),
]]
CLAIMS += [Claim(SECONDARY, *row) for row in [  # what follows from it or stands beside it
    ("Sec. 6.4, Supp. D",
     "Inpainting: a fixated model fails even at its own size once the square is not in the centre.",
     CURVES_ONLY,
     "on-demand − fixated inside the hole, squares anywhere: level 1 (sides 1 to 6) for 5×5 (easy), "
     "level 6 (31 to 36) for 32×32 (hard)",
     partial(compare, pairs={
         own: ("inpaint", "on_demand", f"fixated_{own}", [level], "psnr_hole")
         for own, level in {"easy": "1", "hard": "6"}.items()  # 5×5 and 32×32 lie in these levels
     })),
    ("Sec. 6.6", "On-demand learning is the best on the level on which nobody trained, too.",
     NO_NUMBER, "on-demand − each of six rivals, PSNR on level 6, every task",
     partial(compare, pairs={
         f"{plain(task)}, {published.SEVEN[rival]}": (task, "on_demand", rival, ["6"])
         for task in paper.AS_SHIPPED for rival in table1.RIVALS
     }, best=True)),
    ("Table 1", "A staged curriculum collapses on deblurring.",
     span(paper_gaps("rigid_joint", "staged_curriculum", ["deblur"])),
     f"rigid joint − staged curriculum, mean PSNR: more than {LARGE_EFFECT} dB",
     partial(compare, pairs={plain("deblur"): ("deblur", "rigid_joint", "staged_curriculum")}, beyond=LARGE_EFFECT,
             harm=True)),
    ("Sec. 6.6, Supp. E", "A staged curriculum overfits to what it saw last, level 5.",
     f"over all levels {span(paper_gaps('rigid_joint', 'staged_curriculum'))}",
     "rigid joint − staged curriculum: on level 1 more than on level 5, every task",
     partial(judge.compare_levels, one="rigid_joint", other="staged_curriculum", more="1", less="5")),
    ("Sec. 6.6, Supp. E", "A staged anti-curriculum overfits to what it saw last, the easiest level.",
     f"over all levels {span(paper_gaps('rigid_joint', 'staged_anti_curriculum'))}",
     "rigid joint − staged anti-curriculum: on level 5 more than on level 1, every task",
     partial(judge.compare_levels, one="rigid_joint", other="staged_anti_curriculum", more="5", less="1")),
    ("Table 1, Sec. 6.6, Supp. E", "Hard mining is inferior.",
     span(paper_gaps("on_demand", "hard_mining")), "on-demand − hard mining, mean PSNR, every task",
     table1.judge_hard_mining),
    ("Sec. 6.6", "Hard mining overfits to its pool.",
     NO_NUMBER, "the drop in PSNR from the pool's examples to held-out ones: hard mining − rigid joint, every task",
     gradients_and_pool.remembers),
    ("Table 1, Sec. 6.6, Supp. E",
     "Rigid joint and both cumulative schedules are stronger rivals than the staged ones and hard mining.",
     span(GROUP_MARGINS), f"each of the {len(published.JOINT)} − each of the others, mean PSNR, every task",
     table1.judge_joint_schedules),
    ("Sec. 5.3", "PSNR is a better feedback than L2.",
     NO_NUMBER, "on-demand − on-demand with shares by squared error, mean PSNR, every task",
     contest("on_demand", "on_demand_l2")),
    ("Sec. 6.6", "The hardest level that is trained on has a stronger gradient than the easiest.",
     NO_NUMBER, "rigid joint, after training: norm of level 5's gradient beyond that of level 1's, every task",
     gradients_and_pool.severe_dominate),
    ("Sec. 6.6", "Twice the images do not help rigid joint learning.",
     NO_NUMBER, "inpainting, rigid joint: all images − half of them, mean PSNR: at most 0.1 dB",
     partial(compare, pairs={"": ("inpaint", RIGID_ALL, RIGID_HALF)}, beyond=EQUIVALENCE, sign=-1)),
    ("Sec. 6.6", "On-demand learning with half as many images stays ahead of rigid joint learning.",
     NO_NUMBER, "inpainting, on-demand with half of the images − rigid joint with all, mean PSNR",
     partial(compare, pairs={"": ("inpaint", OURS_HALF, RIGID_ALL)})),
    ("Table 2", "A context encoder for the centre beats the on-demand network on the central block.",
     signed(ENCODERS[0][0] - FILLED[0]), "centre encoder − on-demand, PSNR inside the central block; the encoder is "
     "retrained here, as long as the on-demand network",
     absolute(table2.judge_block, one=CENTRE, others=["on_demand"], block="central")),
    ("Table 2", "The on-demand network beats both context encoders on an arbitrary block.",
     span(FILLED[1] - other[1] for other in ENCODERS),
     "on-demand − each encoder, PSNR inside an arbitrary block",
     absolute(table2.judge_block, one="on_demand", others=[CENTRE, RANDOM], block="arbitrary")),
    ("Table 2", "With random region dropout, a context encoder is still behind the on-demand network.",
     span(a - b for a, b in zip(FILLED, ENCODERS[1], strict=True)),
     "on-demand − that encoder, PSNR inside either block; the encoder is retrained here, as long as the other",
     absolute(compare, pairs={block: ("blocks", "on_demand", RANDOM, [block]) for block in blocks.BLOCKS})),
    ("Table 2", "The on-demand network fills a central and an arbitrary block about equally well.",
     signed(FILLED[0] - FILLED[1]), "on-demand, central − arbitrary block: less than 1 dB apart, either way",
     table2.judge_both_blocks),
    ("Table 3", f"At σ = 25 the on-demand network beats six published denoisers on {WON} of 11 images.",
     f"{WON} of 11", DB11_LEADS + f"the {WON}th best lead is above 0",
     absolute(table3.judge_images_won, system="on_demand")),
    ("Table 3",
     f"At σ = 25 the same network trained for it beats six published denoisers on {WON_BY_FIXATED} of 11 images.",
     f"{WON_BY_FIXATED} of 11", DB11_LEADS + f"the {WON_BY_FIXATED}th best lead is above 0",
     absolute(table3.judge_images_won, system="fixated")),
    ("Fig. 6", "The on-demand network does well at every noise level without knowing σ.",
     CURVES_ONLY, "DB11, clipped noise, − BM3D told the true σ: nowhere more than 0.5 dB behind",
     absolute(db11_spectrum.judge_whole_spectrum)),
    ("Fig. 6, Supp. H", "MLP, CSF and TNRD, trained at σ = 25, fail at stronger noise.",
     CURVES_ONLY,
     f"DB11, retrained here, − BM3D told the true σ: more than {LARGE_EFFECT} dB lower at some σ above 25 than at 25; "
     "without the MLP, which is no opponent here",
     db11_spectrum.judge_trained_at_25),
]]


LONG_RUN, PLATEAU = ", width 32, 60,000 steps", ", width 8, 300,000 steps"  # as `dose.name` has them
NARROW, LONGER = ", width 8, 10,000 steps", ", width 8, 30,000 steps"
CLAIMS += [Claim(ASKED, "Eq. 3", *row) for row in [  # our questions: what the feedback does, and why
    ("Equation 3 at its own dose beats equal shares.",
     span(paper_gaps("on_demand", "rigid_joint")), "on-demand − rigid joint, mean PSNR, every task",
     partial(dose.judge_dose, k=1)),
    ("At four times the dose, level 5 gains on level 1.",
     NO_NUMBER, "1/P⁴ − equal shares: on level 5 more than on level 1, every task",
     partial(judge.compare_levels, one=dose.NAMES[4], other="rigid_joint", more="5", less="1")),
    ("The cumulative curriculum, which leans to the easy levels, is ahead of on-demand learning.",
     NO_NUMBER, "cumulative curriculum − on-demand, mean PSNR, deblurring and denoising",
     contest("cumulative_curriculum", "on_demand", catalogue.CONFOUNDED)),
    ("Equal shares of all levels, without feedback, cure fixation as well.",
     "“inadequate” (Sec. 4)", "the comparisons of the core claim on fixation, rigid joint in the place of on-demand "
     "learning", partial(fixation.judge_fixation, schedule="rigid_joint")),
]]
CLAIMS += [Claim(ASKED, f"{FACES_ALONE}, Eq. 3", *row) for row in [
    ("Leaning to the easy levels instead (P⁴) beats equal shares.",
     NO_NUMBER, "P⁴ − equal shares, mean PSNR, every task",
     contest(dose.NAMES[-4], "rigid_joint")),
    ("The more a batch leans to the hard levels, the lower the mean PSNR.",
     NO_NUMBER, "slope of the margin over equal shares on the dose, k = −4, 1 and 4, mean of the four tasks: below 0",
     dose.judge_slope),
    ("The cumulative curriculum is ahead because its last stage meets the falling learning rate.",
     NO_NUMBER, "its lead when the rate falls over the last fifth − when it falls over the last two fifths: above 0",
     dose.judge_decay),
    ("The cumulative curriculum's mean shares, from the first step on and in no order, are as good as it.",
     NO_NUMBER, "static shares 46/26/16/9/4 − cumulative curriculum, deblurring and denoising: at most "
     f"{EQUIVALENCE} dB behind",
     contest("static_easy", "cumulative_curriculum", catalogue.CONFOUNDED, beyond=-EQUIVALENCE)),
    ("Leaning to the easy levels from the first step on beats equal shares, without any order.",
     NO_NUMBER, "static shares 46/26/16/9/4 − equal shares, mean PSNR, deblurring and denoising",
     contest("static_easy", "rigid_joint", catalogue.CONFOUNDED)),
    ("A network's own feedback beats the shares that another seed's feedback recorded.",
     NO_NUMBER, "1/P⁴ − the next seed's shares under 1/P⁴, epoch by epoch, mean PSNR, deblurring and denoising",
     dose.judge_replay),
    ("After six times the training, Equation 3 beats equal shares.",
     NO_NUMBER, "60,000 steps: on-demand − rigid joint, mean PSNR, every task",
     contest(f"on_demand{LONG_RUN}", f"rigid_joint{LONG_RUN}")),
]]
CLAIMS += [Claim(ASKED, f"{FACES_ALONE}, later work", *row) for row in [
    ("Minimax training is less far behind the specialists than Equation 3, on the level where it is furthest.",
     NO_NUMBER, "the largest gap to a network trained on one level, levels 1–5: on-demand − minimax gap, every task; "
     "one set of such networks serves all seeds, so no interval holds its chance",
     partial(table1.judge_worst_gap, one="minimax_gap", other="on_demand")),
    ("Minimax training has the higher mean PSNR, too.",
     NO_NUMBER, "minimax gap − on-demand, mean PSNR, every task",
     contest("minimax_gap", "on_demand")),
    ("Group DRO, which weights the loss of the worst levels, beats Equation 3.",
     NO_NUMBER, "group DRO − on-demand, mean PSNR, every task",
     contest("group_dro", "on_demand")),
    ("Shares as 1/MSE, for which the mean PSNR itself asks, beat equal shares.",
     NO_NUMBER, "shares as 1/MSE − equal shares, mean PSNR, every task",
     contest("inverse_mse", "rigid_joint")),
]]
CLAIMS += [Claim(BUILT_IN, *row) for row in [  # what could hardly come out otherwise
    ("Sec. 6.6", "During training the batch shifts to the harder levels.",
     NO_NUMBER, "level 5 − level 1, per cent of the batch in the last epoch: Equation 3 gives more to a lower PSNR",
     allocation.judge_shift),
    ("Sec. 6.6", "The easiest level is never abandoned.",
     NO_NUMBER, "least share of level 1 in any epoch: more than 10 %, half of an equal one",
     allocation.judge_easiest_share),
    ("Table 2", "The context encoder for the centre fails on a block anywhere else.",
     signed(ENCODERS[0][0] - ENCODERS[0][1]),
     f"centre encoder, central − arbitrary block: more than {LARGE_EFFECT} dB; it fills nothing outside the centre",
     table2.judge_centre_encoder),
    ("Fig. 6, Supp. H", "BM3D, K-SVD and WNNM break down at other noise levels when they are told 25.",
     CURVES_ONLY, f"DB11, − BM3D told the truth: more than {LARGE_EFFECT} dB lost at some σ above 25",
     db11_spectrum.judge_told_25),
]]
CLAIMS += [  # what is asked later comes last, so that numbers stay
    Claim(ASKED, "Table 2, beside it",
          "A fill that learns nothing, the biharmonic equation, beats the on-demand network inside a missing block.",
          NO_NUMBER, "biharmonic − on-demand, PSNR inside either block", table2.judge_classical),
    Claim(SECONDARY, "Sec. 1, Supp. C",
          "A model fixated on hard damage does worse on milder damage than on its own.",
          "pictures only", "inpainting (inside the hole), interpolation and deblurring: PSNR at its own severity − on "
          "level 1, the mildest; asked when the results were known", fixation.judge_hard_model_on_mild_damage),
]
CLAIMS += [Claim(ASKED, f"{FACES_ALONE}, today's network", *row) for row in [  # a residual U-Net, judged by rule 3
    ("Today's network, trained on equal shares, is above the damaged pictures on level 1.",
     NO_NUMBER, "residual U-Net, equal shares − damaged image, PSNR on level 1, every task", today.judge_above_damaged),
    ("At no more core-seconds, today's network is ahead of the paper's, both trained on equal shares.",
     NO_NUMBER, "residual U-Net, 5,000 steps − the paper's network, 10,000 steps, mean PSNR, every task",
     contest("rigid_joint" + today.OF_UNET, "rigid_joint")),
    ("Today's network: Equation 3 at its own dose beats equal shares.",
     NO_NUMBER, "residual U-Net: on-demand − rigid joint, mean PSNR, every task",
     contest_today("on_demand", "rigid_joint")),
    ("Today's network: four times the dose beats equal shares.",
     NO_NUMBER, "residual U-Net: 1/P⁴ − rigid joint, mean PSNR, every task",
     contest_today("on_demand, k = 4", "rigid_joint")),
    ("Today's network: shares as 1/MSE beat equal shares.",
     NO_NUMBER, "residual U-Net: shares as 1/MSE − rigid joint, mean PSNR, every task",
     contest_today("inverse_mse", "rigid_joint")),
    ("Today's network: a model fixated on one severity is behind on-demand learning.",
     NO_NUMBER, "residual U-Net: on-demand − fixated on easy, on hard, mean PSNR, every task",
     today.judge_fixated),
    ("Today's network: the cumulative curriculum is ahead of on-demand learning.",
     NO_NUMBER, "residual U-Net: cumulative curriculum − on-demand, mean PSNR, every task",
     contest_today("cumulative_curriculum", "on_demand")),
    ("Today's network: shares by the second moment of the loss beat equal shares.",
     NO_NUMBER, "residual U-Net: shares by √E[L²], losses divided by them − rigid joint, mean PSNR, every task",
     contest_today("second_moment", "rigid_joint")),
    ("Today's network: EDM's weights beat equal shares in denoising.",
     NO_NUMBER, "residual U-Net: equal shares with EDM's weights − rigid joint, mean PSNR, denoising",
     contest_today("edm", "rigid_joint", ("denoise",))),
]]
CLAIMS += [Claim(ASKED, f"{FACES_ALONE}, why", *row) for row in [
    ("Statistics of the severity alone remove at least half of what a fixated network lacks.",
     NO_NUMBER, "the paper's network, fixated on easy and on hard: per cent of its deficit to on-demand learning that "
     "is gone when BatchNorm's statistics are those of each level and no weight moves: more than 50, every task",
     partial(today.judge_statistics, cases=today.FIXATED_CASES)),
    ("Told the composite, Equation 3 beats equal shares by the composite.",
     NO_NUMBER, "Equation 3 with the composite's PSNR as feedback − rigid joint, PSNR with the known pixels put back",
     today.judge_composite_feedback),
    ("Told the composite, minimax training has a smaller worst gap by the composite than Equation 3.",
     NO_NUMBER, "the largest gap to a network trained on one level, known pixels put back: on-demand − minimax gap "
     "told the composite", today.judge_composite_worst_gap),
    ("At a plateau, Equation 3 beats equal shares.",
     NO_NUMBER, "width 8, 300,000 steps: on-demand − rigid joint, mean PSNR, denoising and inpainting",
     contest("on_demand" + PLATEAU, "rigid_joint" + PLATEAU, catalogue.NARROW_TASKS)),
]]
CLAIMS += [
    Claim(SECONDARY, "Table 1, Supp. E",
          "Equation 3 lowers L2, the mean squared error, which training minimises.",
          f"{span(ERROR_CHANGES, '%')} against equal shares",
          "change of L2 by on-demand against rigid joint learning, per cent, every task: below 0; asked when the "
          "results were known", table1.judge_error),
    Claim(SECONDARY, "Table 2",
          "A network for the centre alone beats the on-demand network on the central block.",
          signed(ENCODERS[0][0] - FILLED[0]),
          "in the place of the centre encoder our own network fixated on the central 32×32 block − on-demand, PSNR "
          "inside it, on the same crops; asked when the results were known", table2.judge_specialist),
    Claim(ASKED, f"{FACES_ALONE}, why",
          "Statistics of the severity alone remove at least half of what the staged curriculum lacks.",
          NO_NUMBER, "the paper's network, staged curriculum: per cent of its deficit to on-demand learning that is "
          "gone when BatchNorm's statistics are those of each level and no weight moves: more than 50, every task but "
          "inpainting, where over all pixels it lacks nothing for certain",
          partial(today.judge_statistics, cases=today.STAGED_CASES)),
]
CLAIMS += [Claim(ASKED, f"{FACES_ALONE}, why", *row) for row in [  # the short lengths on the way to the plateau
    ("At width 8, Equation 3 beats equal shares.",
     NO_NUMBER, "width 8, 10,000 steps: on-demand − rigid joint, mean PSNR, denoising and inpainting",
     contest("on_demand" + NARROW, "rigid_joint" + NARROW, catalogue.NARROW_TASKS)),
    ("At width 8, four times the dose beats equal shares.",
     NO_NUMBER, "width 8, 10,000 steps: 1/P⁴ − rigid joint, mean PSNR, denoising and inpainting",
     contest("on_demand, k = 4" + NARROW, "rigid_joint" + NARROW, catalogue.NARROW_TASKS)),
    ("At width 8, after three times the training, Equation 3 beats equal shares.",
     NO_NUMBER, "width 8, 30,000 steps: on-demand − rigid joint, mean PSNR, denoising and inpainting",
     contest("on_demand" + LONGER, "rigid_joint" + LONGER, catalogue.NARROW_TASKS)),
]]
# fmt: on
