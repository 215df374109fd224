"""What the Reliability page shows, from data/results/faults.json."""

from snippets import NOT_MEASURED, markdown

from odl.machine import files, store

COMPARISON = "comparison"


def campaign() -> dict:
    """What is measured: `rows` by name, and the names of `all`. Raises FileNotFoundError."""
    return files.unseal(store.used(files.results() / "faults.json"))


def promises() -> str:
    """A promise a row, with its fault, what was counted, and what happens when the promise is broken."""
    found, table = campaign(), []
    measured = [row for name, row in found["rows"].items() if name != COMPARISON]
    if not measured:
        raise FileNotFoundError("the rows of faults.json")
    for row in measured:
        counted = [f"{row[key]:,}" for key in ("injected", "recovered", "silent")]
        worst, broken = row["worst_seconds"], row["broken"]
        recovery = f"{worst:.1f} s" if worst >= 1 else f"{1000 * worst:.0f} ms"
        breach = f"{row['mutation']}: {broken['silent']} of {broken['injected']} silent"
        table.append([row["promise"], row["fault"], *counted, recovery, breach])
    header = ["Promise", "Fault", "Injected", "Recovered", "Silent", "Worst recovery", "With the promise broken"]
    absent = [name for name in found["all"] if name not in found["rows"]]
    note = f"\n\nWithout rows that are {NOT_MEASURED}: {', '.join(absent)}." if absent else ""
    return f"{origin(measured)}\n\n{markdown(header, table)}{note}"


def origin(measured: list[dict]) -> str:
    """One line: with what and where the rows are measured."""
    known = measured[0]["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in known["versions"].items() if number)
    commits = ", ".join(dict.fromkeys(row["provenance"]["commit"] for row in measured))
    return f"*{known['processor']}, {known['system']}, processes of one thread; {versions}; commit {commits}.*"


def comparison() -> str:
    """Eight faults for other ways to train: of the faults injected, how many were recovered from, loud, and silent."""
    row = campaign()["rows"].get(COMPARISON)
    if not row:
        raise FileNotFoundError(f"the row {COMPARISON} of faults.json")
    kinds = ("recovered", "loud", "silent")
    table = [
        [fault["fault"], *(" / ".join(str(fault[way][kind]) for kind in kinds) for way in row["ways"])]
        for fault in row["faults"]
    ]
    told = f"Each fault {row['each']} times: recovered / loud (stopped with an error, and not right again) / silent."
    return f"{origin([row])}\n\n{told}\n\n{markdown(['Fault', *row['ways']], table)}"
