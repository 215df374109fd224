"""A machine without native bf16, simulated: AVX-512 and bf16 are hidden from a process of its own, on the CPU.

There our training is plain fp32, and must not be slower than it.
"""

import json
from dataclasses import replace
from statistics import median

from odl.step import quick_precision

from . import measure, training

HIDDEN = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
LEAST = 0.97  # of the speed of eager fp32


def run(options: measure.Options) -> dict:
    options = replace(options, device="cpu")
    answer = measure.in_child("without_bf16", options, HIDDEN)
    seconds, faster = answer["seconds"], measure.ratio(answer["seconds"], "ours", "eager fp32")
    batch = training.sizes(options)["batch"]
    rows = [
        {
            "contestant": name,
            "ms per step": 1000 * median(values),
            "images/s": batch / median(values),
            "ours, times as fast": None if name == "ours" else faster,
        }
        for name, values in seconds.items()
    ]
    return {
        "scale": training.sizes(options) | {"environment": HIDDEN, "precision_of_ours": answer["precision"]},
        "rows": rows,
        "seconds": seconds,
        "gate": {"compares": "the speed of ours with that of eager fp32", "at_least": LEAST}
        | {"ratio": faster, "passed": faster["median"] >= LEAST},
        "comparisons": [measure.comparison(seconds, "training without bf16", "ours", "eager fp32")],
    }


def main():
    options, _ = measure.child_options()
    options = replace(options, precision=quick_precision(options.device))
    experiment = training.experiment_of(options)
    turns = {name: training.BUILD[name](experiment, options).turn for name in ("eager fp32", "ours")}
    seconds = measure.interleave(turns, options.rounds, "without bf16")
    print(json.dumps({"precision": options.precision, "seconds": seconds}))


if __name__ == "__main__":
    main()
