"""A machine without native bf16, simulated: AVX-512 and bf16 are hidden from a process of its own, on the CPU.

There our bf16 is fp32 with rounding, and must not be much slower than fp32 without it.
"""

from dataclasses import replace
from statistics import median

from odl.machine.device import lacks

from . import measure, training

HIDDEN = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
LEAST = 0.97  # of the speed of eager fp32


def run(options: measure.Options) -> dict:
    options, size = replace(options, device="cpu"), training.sizes(options)
    answer = measure.in_child(race, options, HIDDEN)
    ours = "bf16 by rounding" if answer["rounds"] else "bf16"
    seconds, bar = answer["seconds"], measure.comparison(answer["seconds"], "training without bf16", "eager fp32")
    rows = []
    for name, taken in seconds.items():
        cells = {"contestant": name, "ms per step": 1000 * median(taken), "images/s": size["batch"] / median(taken)}
        rows.append(cells | {"ours, times as fast": measure.faster(seconds, name)})
    hidden = " ".join(f"{name}={value}" for name, value in HIDDEN.items())
    return {
        "scale": size | {"environment": HIDDEN, "precision_of_ours": ours},
        "rows": rows,
        "comparisons": [bar],
        "notes": [
            f"Hidden by `{hidden}`; ours trains in {ours} there.",
            f"Gate: at least {LEAST} times as fast as eager fp32; passed: {measure.cell(bar['median'] >= LEAST)}.",
        ],
    }


def race(options: measure.Options) -> dict:
    """Seconds of a step, and whether ours rounds in this process."""
    options = replace(options, precision="bf16")
    experiment = training.experiment_of(options)
    turns = {name: training.BUILD[name](experiment, options).turn for name in ("eager fp32", "ours")}
    return {"rounds": lacks("bf16", "cpu"), "seconds": measure.interleave(turns, options.rounds, "without bf16")}
