import numpy as np
from scipy.stats import ttest_ind

from companion.judge import paired_p_value
from odl import results
from odl.evaluation import overall
from odl.experiment import Experiment

for task in ("inpaint", "interpolate", "deblur", "denoise"):
    pair = [results.load(Experiment.of(task, "bsds500", s, profile="reference")) for s in ("on_demand", "rigid_joint")]
    if all(pair):
        ours, joint = (overall(run.evaluation).psnr for run in pair)
        last = [np.mean(epoch["psnr"]) for run in pair for epoch in run.history[-5:]]
        step = np.abs(np.diff(np.reshape(last, (2, 5)))).mean()
        p_paired, p_unpaired = paired_p_value(ours, joint), ttest_ind(ours, joint).pvalue
        print(f"{task}: {(ours - joint).mean():+.2f} dB, p = {p_paired:.0e} paired, {p_unpaired:.0e} unpaired;")
        print(f"    from one epoch to the next {step:.2f} dB")
