"""A card for each network for photographs that ships: what it is for, on what it trained, what it makes worse.

The numbers come from the result of its training and from those of `companion.measure.photographs`.
"""

import json
from pathlib import Path

import pandas as pd

from companion.disk import files
from companion.measure import photographs as measured
from companion.restore import chosen
from companion.restore.photographs import GREY_EVERY, LENGTH, LOST, MOST_NOISE, PHOTO_TASKS, QUALITIES, RADIUS
from companion.training import checkpoint

DAMAGE = {
    "photo_denoise": "Gaussian noise as it is, or clipped and rounded to 8 bits; Poisson noise of the same mean "
    f"variance; Gaussian noise saved as JPEG of quality {QUALITIES[0]} to {QUALITIES[1]}",
    "photo_deblur": f"Gaussians, round and not; discs of a radius up to {RADIUS:g} pixels; straight motion at any "
    f"angle, up to {LENGTH:g} pixels long; on half of the crops noise of σ up to {MOST_NOISE:g} of 255; all rounded to "
    "8 bits",
    "photo_fill": f"single pixels, {LOST[0]:.0%} to {LOST[1]:.0%} of them; scratches, dust, letters, squares and blobs "
    "up to 48 pixels wide; several of them at once",
}
DOES = {
    "photo_denoise": "Removes noise from a photograph, in colour or grey. It is not told how much there is.",
    "photo_deblur": "Sharpens a blurred photograph, in colour or grey. It is not told the blur.",
    "photo_fill": "Fills the pixels of a photograph that a mask marks, and returns all others as they are.",
}
COMMANDS = {
    "photo_denoise": "python -m odl restore --task denoise noisy.jpg restored.jpg",
    "photo_deblur": "python -m odl restore --task deblur blurred.jpg restored.jpg",
    "photo_fill": "python -m odl restore --task inpaint --mask scratches.png scan.jpg restored.jpg",
}


def write(task: str) -> Path:
    """Write the card of a network beside its weights. Raises FileNotFoundError where these do not ship."""
    place = place_of(task)
    files.write_atomically(place.with_suffix(".md"), card(task).encode())
    return place.with_suffix(".md")


def place_of(task: str) -> Path:
    place = chosen.weights_of(next(name for name, own in chosen.TRAINED_ON.items() if own == task))
    if place is None:
        raise FileNotFoundError(f"{task}.safetensors is in no manifest of {files.models()}")
    return place


def result_of(place: Path) -> dict | None:
    """Return the result of the run whose weights these are, by the owner in their header; None where it is not here."""
    owner = checkpoint.owner_in(place)
    for path in sorted(files.results().glob(f"*/*/{place.stem}/*.json")):
        content = json.loads(path.read_bytes())
        owned = content["experiment"] | {"protocol": content["protocol"]}
        if checkpoint.hash_of_owner(owned) == owner:
            return files.unseal(path)
    return None


def card(task: str) -> str:
    """Return the card in Markdown."""
    place = place_of(task)
    result = result_of(place)
    rows = measured.table([row for row in (*measured.ROWS, *measured.ON_DB11) if network_of(row) == task])
    parts = [
        f"# {task}", DOES[task], f"```bash\n{COMMANDS[task]}\n```", "## Training", trained(task, place, result),
        *(["## Scores on test crops", by_level(task, result)] if result else []),
        *(["## On photographs", on_photographs(rows)] if len(rows) else []),
        "## What it makes worse", worse(rows, result), "## Terms", TERMS,
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


TERMS = (
    "The weights were trained on scenes of BSDS500 alone, under its terms: non-commercial research and education. "
    "No photograph of a face set was used."
)


def trained(task: str, place: Path, result: dict | None) -> str:
    """Say what the network is, its data, the length of its training and the damage that it has met."""
    parameters = sum(t.numel() for t in checkpoint.read_weights(place).values())
    told = ", which sees a push-pull guess of the missing pixels and the mask" if task == "photo_fill" else ""
    text = f"A residual U-Net without normalisation{told}: {parameters:,} parameters, stored in half precision."
    if result:
        e, source = result["experiment"], result["provenance"]
        text += (
            f"\n{e['epochs'] * e['iterations']:,} steps of {e['batch_size']} crops of 64×64 pixels from "
            f"{source['train_images']:,} photographs of `{e['dataset']}`, one crop in {GREY_EVERY} made grey, all "
            f"levels equally; {source['seconds']['train'] / 3600:.1f} hours on {source['device']}, commit "
            f"`{source['commit']}`."
        )
    return f"{text}\nIt has met {DAMAGE[task]}."


def level_means(result: dict) -> pd.DataFrame:
    """Return means in dB over the test crops of each level: `psnr_input`, damaged, and `psnr`, restored."""
    return pd.DataFrame(result["evaluation"]).groupby("level")[["psnr_input", "psnr"]].mean()


def by_level(task: str, result: dict) -> str:
    """Return a Markdown table of PSNR in dB of every level, damaged and restored."""
    scores = level_means(result)
    lines = [f"| level | {PHOTO_TASKS[task]['severity']} | damaged (dB) | restored (dB) |", "| --- | --- | --- | --- |"]
    for level, (low, high) in enumerate(PHOTO_TASKS[task]["levels"], 1):
        damaged, restored = scores.loc[str(level)]
        lines.append(f"| {level} | {low:g} to {high:g} | {damaged:.2f} | {restored:.2f} |")
    note = "Level 6 was not trained." if task != "photo_fill" else "Missing pixels of the damaged image are white."
    return "\n".join([*lines, "", note])


def network_of(row: str) -> str:
    return chosen.TRAINED_ON[measured.task_of(row)]


def on_photographs(rows: pd.DataFrame) -> str:
    """Return a Markdown table of PSNR in dB beside the paper's network and the better of what learns nothing, blind."""
    lines = ["| damage | damaged | the paper's network | this network | without learning |", "| --- " * 5 + "|"]
    for row in rows.itertuples():
        scores = f"{row.damaged:.1f} | {row.paper:.1f} | {row.photographs:.1f} | {row.rival_psnr:.1f}"
        lines.append(f"| {row.damage} | {scores} ({row.rival}) |")
    return "\n".join(lines)


def worse(rows: pd.DataFrame, result: dict | None) -> str:
    """Say where the network is below what is damaged, crops and photographs, and where below what learns nothing."""
    said, loss = [], level_means(result).eval("psnr_input - psnr") if result else pd.Series()
    if len(harmed := loss[loss > 0]):
        each = [f"level {level} (by {db:.1f} dB)" for level, db in harmed.items()]
        said.append(f"Below the damaged test crops: {'; '.join(each)}. So leave alone what is hardly damaged.")
    if not len(rows):
        return "\n".join([*said, "Not measured on photographs yet."])
    for than, column in (("the damaged photograph", "damaged"), ("what learns nothing", "rival_psnr")):
        below = rows[rows.photographs < rows[column]]
        each = [f"{row.damage} (by {getattr(row, column) - row.photographs:.1f} dB)" for row in below.itertuples()]
        said.append(f"Below {than}: {'; '.join(each) if each else f'in none of the {len(rows)} rows above'}.")
    return "\n".join(said)
