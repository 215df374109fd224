"""What the Reliability page shows, from data/results/faults.json."""

from snippets import NOT_MEASURED, markdown

from odl.machine import files, store


def campaign() -> dict:
    """What is measured: `rows` by name, and the names of `all`. Raises FileNotFoundError."""
    return files.unseal(store.used(files.results() / "faults.json"))


def promises() -> str:
    """A promise a row, with its fault and what was counted."""
    found, table = campaign(), []
    measured = [*found["rows"].values()]
    if not measured:
        raise FileNotFoundError("the rows of faults.json")
    for row in measured:
        counted = [f"{row[key]:,}" for key in ("injected", "recovered", "silent")]
        worst = row["worst_seconds"]
        recovery = f"{worst:.1f} s" if worst >= 1 else f"{1000 * worst:.0f} ms"
        table.append([row["promise"], row["fault"], *counted, recovery])
    header = ["Promise", "Fault", "Injected", "Recovered", "Silent", "Worst recovery"]
    absent = [name for name in found["all"] if name not in found["rows"]]
    note = f"\n\nWithout rows that are {NOT_MEASURED}: {', '.join(absent)}." if absent else ""
    return f"{origin(measured)}\n\n{markdown(header, table)}{note}"


def origin(measured: list[dict]) -> str:
    """One line: with what and where the rows are measured."""
    known = measured[0]["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in known["versions"].items() if number)
    commits = ", ".join(dict.fromkeys(row["provenance"]["commit"] for row in measured))
    return f"*{known['processor']}, {known['system']}, processes of one thread; {versions}; commit {commits}.*"
