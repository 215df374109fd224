import json
import tempfile
from pathlib import Path

import numpy as np

from odl.machine import files

rng = np.random.default_rng(0)
truth = files.unseal(files.results() / "reference" / "bsds500" / "inpaint" / "on_demand-seed0.json")
for name, content in (("without a seal", json.dumps(truth).encode()), ("with one", files.seal(truth))):
    refused = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "result.json")
        for place, bit in zip(rng.integers(0, len(content), 1000), rng.integers(0, 8, 1000), strict=True):
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(bit)
            file.write_bytes(damaged)
            try:
                wrong += files.unseal(file) != truth
            except files.DamagedFile:
                refused += 1
    print(f"{name}: of 1000 files {refused} refused, {wrong} wrong and accepted")
