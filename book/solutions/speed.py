import json

from odl.machine import files

folder = files.results() / "benchmarks" / "cpu-2-threads"
rows = {
    name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    for name in ("training", "corruptions")
}
[step] = [row["ms per step"] for row in rows["training"] if row["contestant"] == "ours"]
print(f"a training step: {step:.0f} ms")
for row in rows["corruptions"]:
    if row["contestant"] in ("ours", "loop"):
        corrupting = 100 / row["images/s"] * 1000  # ms for a batch of 100
        gain = step / (step - corrupting) if row["contestant"] == "ours" else (step + corrupting) / step
        print(f"{row['task']}, {row['contestant']}: {corrupting:.1f} ms; without it {gain:.3f} times as fast")
