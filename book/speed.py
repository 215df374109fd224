"""What the Speed page shows, from data/results/benchmarks: a folder per device, a JSON per benchmark."""

from measured import markdown

from bench.measure import cell
from companion.disk import files

ORDER = ("training", "corruptions")
COLUMNS = ("task", "contestant", "precision", "ms per step", "images/s", "ours, times as fast", "PSNR (dB)")
COLUMNS += ("difference from the loop", "counts")
FORMER = "scikit-image"  # a contestant in stored results, which `make bench` measures no longer


def table(name: str) -> str:
    """Return a benchmark's tables, one per device. Raises FileNotFoundError where nobody has measured it."""
    paths = sorted((files.results() / "benchmarks").glob(f"*/{name}.json"))
    if not paths:
        raise FileNotFoundError(f"benchmarks/*/{name}.json")
    return "\n\n".join(block(files.unseal(path)) for path in paths)


def block(content: dict) -> str:
    """Return what the numbers are measured with, and the numbers."""
    known, sizes, rounds = content["provenance"], content["scale"], content["rounds"]
    names = {"dataset": "{}", "width": "width {}", "batch": "batches of {}"}
    scale = [text.format(sizes[key]) for key, text in names.items() if key in sizes]
    versions = [f"{name} {known['versions'].get(name, 'not installed')}" for name in ("torch", "deepinv")]
    where = [known["device"], known["processor"], known["capability"], f"ours in {sizes['precision_of_ours']}"]
    parts = [where, [f"{rounds} round{'s' * (rounds > 1)}", *scale], versions, [f"commit {known['commit']}"]]
    origin = f"*{'; '.join(', '.join(part) for part in parts)}.*"
    columns = [name for name in COLUMNS if name in content["rows"][0]]
    rows = [[cell(row[name]) for name in columns] for row in content["rows"] if row["contestant"] != FORMER]
    return f"{origin}\n\n{markdown(columns, rows)}"
