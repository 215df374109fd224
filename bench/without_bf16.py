"""A machine without native bf16, simulated: AVX-512 and bf16 are hidden from a process of its own, on the CPU.

There our training is plain fp32, and must not be slower than it.
"""

from dataclasses import replace
from statistics import median

from odl.machine.device import quick_precision

from . import measure, training

HIDDEN = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
LEAST = 0.97  # of the speed of eager fp32


def run(options: measure.Options) -> dict:
    options, size = replace(options, device="cpu"), training.sizes(options)
    answer = measure.in_child(race, options, HIDDEN)
    seconds, bar = answer["seconds"], measure.comparison(answer["seconds"], "training without bf16", "eager fp32")
    rows = []
    for name, taken in seconds.items():
        cells = {"contestant": name, "ms per step": 1000 * median(taken), "images/s": size["batch"] / median(taken)}
        rows.append(cells | {"ours, times as fast": measure.faster(seconds, name)})
    hidden = " ".join(f"{name}={value}" for name, value in HIDDEN.items())
    return {
        "scale": size | {"environment": HIDDEN, "precision_of_ours": answer["precision"]},
        "rows": rows,
        "comparisons": [bar],
        "notes": [
            f"Hidden by `{hidden}`; ours trains in {answer['precision']} there.",
            f"Gate: at least {LEAST} times as fast as eager fp32; passed: {measure.cell(bar['median'] >= LEAST)}.",
        ],
    }


def race(options: measure.Options) -> dict:
    """Seconds of a step, and the precision that ours chooses in this process."""
    options = replace(options, precision=quick_precision(options.device))
    experiment = training.experiment_of(options)
    turns = {name: training.BUILD[name](experiment, options).turn for name in ("eager fp32", "ours")}
    return {"precision": options.precision, "seconds": measure.interleave(turns, options.rounds, "without bf16")}
