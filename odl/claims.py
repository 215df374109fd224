"""What the measured numbers say about the paper's claims: scale, verdicts, scorecard."""

import numpy as np
import pandas as pd

from odl import denoising, paper
from odl.corruptions import FILL
from odl.plots import psnr_inside
from odl.plots_systems import TITLES


def scale(results) -> str:
    """One sentence on what a number was measured with."""
    e, where = results[0].experiment, results[0].provenance
    seeds = len({r.experiment["seed"] for r in results})
    precision = " or ".join(sorted({r.provenance["precision"] for r in results}))
    return (
        f"Scale: width {e['width']} (paper: 64), {e['epochs'] * e['iterations']:,} iterations (paper: 1,500,000), "
        f"learning rate {e['learning_rate']:g} (paper: 2e-4), {where['train_images']:,} training images of "
        f"{e['dataset']} (paper: 100,000), {e['test_images']:,} test crops × {e['trials']} trials, "
        f"{seeds} {'seed' if seeds == 1 else 'seeds'}, {where['device']}, {precision}."
    )


def table1_verdict(table: pd.DataFrame, results) -> str:
    """On-demand against the best other schedule and against rigid joint, beside the paper's margins."""
    rows = table.set_index("schedule").dropna(subset="psnr")
    ahead = rows.ahead.dropna().sort_values()
    if not len(ahead):
        return "On-demand learning and an opponent are not both measured at this scale: no verdict."
    task, ours = results[0].experiment["task"], rows.psnr["on_demand"]
    best, worst = ahead.index[0], ahead.index[-1]
    margins = [paper.TABLE1[task]["on_demand"][k][1] - paper.TABLE1[task][best][k][1] for k in (0, 1)]
    seeds = len({r.experiment["seed"] for r in results if r.experiment["schedule"] == "on_demand"})
    order = "**ahead of every other schedule**" if ahead.iloc[0] > 0 else f"**behind {paper.SCHEDULES[best]}**"
    missing = [paper.SCHEDULES[s] for s in paper.SCHEDULES if s not in rows.index]
    return "\n\n".join(
        [
            f"On-demand learning reaches {ours:.2f} dB and is {order}: {ahead.iloc[0]:+.3f} dB against "
            f"{paper.SCHEDULES[best]} (paper: {margins[0]:+.2f} on CelebA, {margins[1]:+.2f} on SUN397). "
            f"The weakest is {paper.SCHEDULES[worst]} at {rows.psnr[worst]:.2f} dB.",
            "The p-value says that two trained networks differ on these test images; it says nothing about another "
            f"training seed. With {seeds} {'seed' if seeds == 1 else 'seeds'} a margin below 0.1 dB is no evidence for "
            "an ordering of schedules.",
            scale(results),
            *([f"Not measured at this scale: {', '.join(missing)}."] if missing else []),
        ]
    )


def applications_verdict(photograph, masks, repaired, results) -> str:
    """PSNR inside each defect before and after the repair."""
    if not results or any(x is None for x in repaired.values()):
        return "No trained network is here: no verdict."
    damaged = {name: np.where(mask[..., None], np.float32(FILL) / 255, photograph) for name, mask in masks.items()}
    gains = [
        f"{name}: {psnr_inside(damaged[name], photograph, mask):.1f} → "
        f"{psnr_inside(repaired[name], photograph, mask):.1f} dB ({mask.mean():.1%} of the pixels)"
        for name, mask in masks.items()
    ]
    return (
        f"PSNR inside the mask, filled with grey → repaired: {'; '.join(gains)}. "
        "The known pixels are returned untouched. A large hole is closed with a smooth "
        f"patch, as the squared error asks. The paper gives pictures only.\n\n{scale(results)}"
    )


def fixation_verdict(table: pd.DataFrame, spectrum: pd.DataFrame, task: str, results) -> str:
    """The two fixated models against on-demand learning: at their own severity, per level, and beside the spike."""
    rows = table.set_index("schedule") if len(table) else table
    fixated = [name for name in paper.FIXATED if name in rows.index]
    if "on_demand" not in rows.index or not fixated:
        return "On-demand learning and a fixated model are not both measured at this scale: no verdict."
    missing = [title for name, title in paper.FIXATED.items() if name not in fixated]
    parts = [fixated_sentence(rows, spectrum, task, name) for name in fixated]
    wrong = [line for name in fixated for line in fixation_mismatches(rows, task, name)]
    parts.append("**Mismatches with the paper:** " + "; ".join(wrong) + "." if wrong else "**The claim holds here.**")
    parts.append("Another training seed moves such means too; only what is well beyond a few tenths of a dB counts.")
    parts += [f"Not measured at this scale: {', '.join(missing)}."] if missing else []
    return "\n\n".join([*parts, scale(results)])


def fixated_sentence(rows, spectrum, task: str, name: str) -> str:
    """What one fixated model gains at its own severity and loses elsewhere (dB against on-demand)."""
    own = name.removeprefix("fixated_")
    levels = [column for column in rows.columns if column.startswith("level_")]
    gap = (rows.loc[name, levels] - rows.loc["on_demand", levels]).astype(float)
    worst = gap.idxmin()
    text = (
        f"**{paper.FIXATED[name]}**, trained at {paper.severity_text(task, own)} only: "
        f"{rows.loc[name, own]:.2f} dB there, "
        f"{rows.loc[name, own] - rows.loc['on_demand', own]:+.2f} dB against on-demand learning. "
        f"Over levels 1–6: {gap.mean():+.2f} dB in the mean, {gap[worst]:+.2f} dB at level {worst[-1]}, the worst; "
        f"on-demand learning is ahead on {(gap < 0).sum()} of 6 levels."
    )
    curve = spectrum[(spectrum.schedule == name) & (spectrum.source == "network")]
    return text + spike_sentence(curve, task, paper.TASKS[task][own])


def spike_sentence(curve: pd.DataFrame, task: str, own: float) -> str:
    """How high the curve of a fixated model stands at its own severity above one step beside it."""
    for centred in [True, False] if task == "inpaint" else [False]:
        line = curve[curve.centred == centred].set_index("severity").psnr.sort_index()
        if own not in line.index:
            return ""
        k = line.index.get_loc(own)
        if centred or task != "inpaint":
            text = (
                f" One step beside it ({line.index[k - 1]:g} and {line.index[k + 1]:g}) the curve is "
                f"{line.iloc[k - 1] - line[own]:+.2f} and {line.iloc[k + 1] - line[own]:+.2f} dB away."
            )
            there = line[own]
        else:
            text += f" The same square at a random place: {line[own] - there:+.2f} dB."
    return text


def fixation_mismatches(rows, task: str, name: str) -> list[str]:
    """Where a fixated model does not win at its own severity, or wins at a level that does not contain it.

    Inpainting: at its own level too, because squares there are at random places (Supp. D).
    """
    own, title = name.removeprefix("fixated_"), paper.FIXATED[name]
    lines = []
    if rows.loc[name, own] <= rows.loc["on_demand", own]:
        lines.append(f"the {title} does not beat on-demand learning even at {paper.severity_text(task, own)}")
    wins = [c[-1] for c in rows.columns if c.startswith("level_") and rows.loc[name, c] > rows.loc["on_demand", c]]
    low_high = paper.TASKS[task]["levels"]
    mine = [str(i) for i, (low, high) in enumerate(low_high, 1) if low <= paper.TASKS[task][own] <= high]
    ahead = [level for level in wins if level not in mine or task == "inpaint"]
    if ahead:
        lines.append(f"the {title} beats on-demand learning on level {', '.join(ahead)}")
    return lines


def allocation_table(runs: dict) -> pd.DataFrame:
    """Images per level of on-demand runs (task → Result or None): columns task, level, first, last, least, most."""
    rows = []
    for task, result in runs.items():
        counts = np.array([epoch["allocation"] for epoch in result.history]) if result else np.zeros((0, 0))
        for level, column in enumerate(counts.T, 1):
            ends = {"first": column[0], "last": column[-1], "least": column.min(), "most": column.max()}
            rows.append({"task": task, "level": level} | ends)
    return pd.DataFrame(rows, columns=["task", "level", "first", "last", "least", "most"])


def allocation_verdict(table: pd.DataFrame, results) -> str:
    """Does the batch shift to the harder levels, and is the easiest ever abandoned?"""
    if table.empty:
        return "On-demand learning is not measured at this scale: no verdict."
    lines = []
    for task, part in table.groupby("task", sort=False):
        last = part["last"].tolist()
        shift = "shifts" if last[-1] > last[0] else "**does not shift (mismatch)**"
        lines.append(
            f"- {paper.TASKS[task]['title']}: {shift} to the harder levels; level 1 ends with {last[0]} and "
            f"level 5 with {last[-1]} of {paper.BATCH_SIZE} images, "
            f"every count stays from {part.least.min()} to {part.most.max()}."
        )
    moved = max(table.most.max() - 20, 20 - table.least.min())
    missing = [task for task in paper.TASKS if task not in set(table.task)]
    kept = "is never abandoned" if table.least[table.level == 1].min() > 0 else "**is abandoned (mismatch)**"
    return "\n".join(
        [
            f"The easiest level {kept}. The paper prints no allocation to compare with.\n",
            *lines,
            f"\nRigid joint learning gives every level 20: no count differs from that by more than {moved}. "
            "The paper says that these proportions bring the gain; if so, very small changes bring it.",
            *([f"\nNot measured at this scale: {', '.join(missing)}."] if missing else []),
            "\n" + scale(results),
        ]
    )


def qualitative_verdict(tables: dict, results) -> str:
    """On which levels on-demand learning is the best of the three; tables: task → `results.level_table`."""
    lines = []
    for task, table in tables.items():
        rows = table.set_index("schedule").filter(like="level_") if len(table) else table
        if "on_demand" not in rows.index or len(rows) < 2:
            continue
        gaps = rows.loc["on_demand"] - rows.drop("on_demand")
        words = [
            f"{gap.mean():+.2f} dB against {(paper.SCHEDULES | paper.FIXATED)[name]} (ahead on {(gap > 0).sum()} of 6)"
            for name, gap in gaps.iterrows()
        ]
        lines.append(f"- {paper.TASKS[task]['title']}: on-demand learning is " + ", ".join(words) + ".")
    if not lines:
        return "On-demand learning and an opponent are not both measured at this scale: no verdict."
    return "\n".join(
        [
            "A few pictures prove nothing, so here are the means over all test crops, levels 1–6.\n",
            *lines,
            "\nWhat is below 0.3 dB is hard to see in a picture; the paper finds the lead over rigid joint learning "
            "(0.10 to 0.25 dB in its tables) visible.\n",
            scale(results),
        ]
    )


def extra_data_verdict(table: pd.DataFrame, results) -> str:
    """Does rigid joint learning gain from twice the images, and does on-demand with half of them stay ahead?"""
    rows = table.dropna(subset="psnr").set_index("run")
    ours, half, whole = "on-demand, half", "rigid joint, half", "rigid joint, all"
    absent = [name for name in (ours, half, whole) if name not in rows.index]
    parts = []
    if ours in rows.index and whole in rows.index:
        gap = rows.psnr[ours] - rows.psnr[whole]
        p = rows.p_value[whole]
        order = "stays ahead of" if gap > 0 else "**falls behind (mismatch)**"
        order = "cannot be told from" if abs(gap) < 0.1 else order
        parts.append(
            f"On-demand learning with {rows.train_images[ours]:,} images {order} rigid joint learning with "
            f"{rows.train_images[whole]:,}: {gap:+.3f} dB (p = {p:.0e} over the same test draws)."
        )
    if half in rows.index and whole in rows.index:
        gain = rows.psnr[whole] - rows.psnr[half]
        word = "does help rigid joint learning (mismatch)" if gain > 0.1 else "does not help rigid joint learning"
        parts.append(f"Doubling the images {word}: {gain:+.3f} dB (p = {rows.p_value_half[whole]:.0e}).")
    parts = parts or ["No verdict yet."]
    parts += [f"Not measured at this scale: {'; '.join(absent)}."] if absent else []
    if not results:
        return parts[-1]
    seeds = len({r.experiment["seed"] for r in results})
    parts.append(
        f"{seeds} {'seed' if seeds == 1 else 'seeds'}: a difference below 0.1 dB is no evidence either way, "
        "whatever its p-value. The paper prints no number for this test."
    )
    return "\n\n".join([*parts, scale(results)])


def table2_verdict(table: pd.DataFrame, results) -> str:
    """Table 2's three statements."""
    rows = table.set_index("method")
    if len(rows) < len(paper.TABLE2):
        return "Not all three methods are measured at this scale: no verdict."
    central, arbitrary = (rows[f"{block}_psnr"] for block in ("central", "arbitrary"))
    centre, random, ours = "context_encoder_center", "context_encoder_random", "on_demand"
    return "\n".join(
        [
            f"- The centre encoder {word(central[centre] > central[ours])} on the central block: "
            f"{central[centre]:.2f} against our {central[ours]:.2f} dB (paper: 22.16 against 20.74).",
            f"- It {word(central[centre] - arbitrary[centre] > 3, 'fails', 'does not fail')} on an arbitrary block: "
            f"{arbitrary[centre]:.2f} dB, {arbitrary[centre] - central[centre]:+.2f} (paper: −10.36). "
            f"With random dropout: {arbitrary[random]:.2f} dB; ours {arbitrary[ours]:.2f} (paper: 16.20; 20.31).",
            f"- The all-rounder {word(abs(central[ours] - arbitrary[ours]) < 1, 'does about as well', 'differs')} in "
            f"both places: {arbitrary[ours] - central[ours]:+.2f} dB (paper: −0.43).",
            "",
            scale([r for r in results if r.experiment["schedule"] == ours]),
            "The context encoders trained as long, with their adversarial loss.",
        ]
    )


def word(true: bool, yes: str = "wins", no: str = "does not win") -> str:
    return f"**{yes}**" if true else f"**{no}**"


def table3_verdict(table: pd.DataFrame, results) -> str:
    """On how many images ours beat everything else that was measured, and the published systems."""
    clipped = table[table.clipped].pivot(index="image", columns="system", values="psnr")
    others = clipped.drop(columns=["on_demand", "fixated"], errors="ignore").max(axis=1)
    lines = []
    for system, count in (("on_demand", 5), ("fixated", 7)):
        if system in clipped and clipped[system].notna().all():
            ours = clipped[system]
            opponents = pd.Series({i: max(list(paper.TABLE3[i].values())[:6]) for i in paper.TABLE3})
            published = (ours > opponents.reindex(ours.index)).sum()
            lines.append(
                f"- {'The all-rounder' if system == 'on_demand' else 'The model fixated at 25'}: {ours.mean():.2f} dB, "
                f"ahead of everything measured here on {(ours > others).sum()} of {len(ours)} images"
                + (f", of the six published columns on {published} (paper: {count} of 11)." if len(ours) == 11 else ".")
            )
        elif system in clipped:
            lines.append(
                f"- {'The all-rounder' if system == 'on_demand' else 'The model fixated at 25'}: not measured yet."
            )
    return "\n".join([*lines, "", *([scale(results)] if results else [])])


def gallery_verdict(shown: pd.DataFrame, name: str, results) -> str:
    """At each σ the all-rounder against the best system fixed at 25, on one crop; `shown`: `denoising.pictures`."""
    scores = shown[shown.system != "noisy"].pivot(index="sigma", columns="system", values="psnr")
    others = scores.drop(columns=["on_demand", "dncnn"], errors="ignore")
    if "on_demand" not in scores or others.empty:
        return "The all-rounder and a system fixed at 25 are not both here: no verdict."
    lines = [
        f"- σ = {sigma:g}: the all-rounder {row.on_demand:.1f} dB, the best of what is fixed at 25 "
        f"{others.loc[sigma].max():.1f} dB ({TITLES[others.loc[sigma].idxmax()]}): "
        + word(row.on_demand > others.loc[sigma].max(), "ahead", "behind")
        for sigma, row in scores.iterrows()
    ]
    few = f"One crop of {name} proves little; the means are on the page of Figure 6.\n"
    return "\n".join([few, *lines, "", *([scale(results)] if results else [])])


def spectrum_verdict(table: pd.DataFrame, results) -> str:
    """How much a wrong σ costs BM3D, and how far the all-rounder stays from BM3D told the truth."""
    curves = table.pivot_table(index="sigma", columns=["system", table.told.fillna(0)], values="psnr")
    lines = []
    if ("bm3d", 0) in curves and ("bm3d", 25) in curves:
        loss = curves["bm3d", 25] - curves["bm3d", 0]
        lines.append(
            f"- BM3D fixed at 25 loses {-loss.min():.1f} dB at σ = {loss.idxmin():g}, where the loss is largest."
        )
    if ("on_demand", 0) in curves and ("bm3d", 0) in curves:
        gap = curves["on_demand", 0] - curves["bm3d", 0]
        lines.append(
            f"- The all-rounder, told nothing, is {gap.min():+.1f} to {gap.max():+.1f} dB from BM3D told the truth: "
            + word(gap.min() > -0.5, "competitive over the whole spectrum", "not competitive at this scale")
            + " (the paper's curves lie on one another)."
        )
    if ("on_demand", 0) in curves and ("bm3d", 25) in curves:
        ahead = (curves["on_demand", 0] > curves["bm3d", 25]).sum()
        lines.append(f"- It is ahead of BM3D fixed at 25 at {ahead} of {len(curves)} noise levels.")
    return "\n".join(
        [
            *(lines or ["Too little is measured for a verdict."]),
            *(f"- {line[0].upper() + line[1:]}." for line in denoising.absent(table)),
            "",
            *([scale(results)] if results else []),
        ]
    )
