"""The names and numbers of the paper's tables, as data."""

from odl import rivals

SEVEN = {  # the rows of Table 1, in the paper's order
    "rigid_joint": "Rigid joint learning",
    "cumulative_curriculum": "Cumulative curriculum",
    "cumulative_anti_curriculum": "Cumulative anti-curriculum",
    "staged_curriculum": "Staged curriculum",
    "staged_anti_curriculum": "Staged anti-curriculum",
    "hard_mining": "Hard mining",
    "on_demand": "On-demand learning",
}
CUMULATIVE = ("cumulative_curriculum", "cumulative_anti_curriculum")
JOINT = ("rigid_joint", *CUMULATIVE)  # these train on all levels together, at least in the end
PARTIAL = ("staged_curriculum", "staged_anti_curriculum", "hard_mining")  # these on one level, or the worst images
FIXATED = {"fixated_easy": "Fixated on easy", "fixated_hard": "Fixated on hard"}


def figure2(task: str) -> str:
    """Return the fixated model that the paper shows in pictures: the easy one for denoising only (Fig. 2, Supp. C)."""
    return "fixated_easy" if task == "denoise" else "fixated_hard"


# Schedules that came after 2017, and controls (`odl/rivals.py`); a specialist trains on one level alone.
LATER = {
    "minimax_gap": "Minimax gap",
    "group_dro": "Group DRO",
    "inverse_mse": "Shares as 1/MSE",
    "second_moment": "Shares by √E[L²]",
    "edm": "EDM's weights",
    "on_demand_composite": "On-demand, told the composite",
    "minimax_gap_composite": "Minimax gap, told the composite",
    "static_easy": "The curriculum's mean shares",
    "replay": "Replay of k = 4",
}
CLASSICAL = {  # methods that learn nothing, task by task
    "biharmonic": "Biharmonic fill",
    "linear": "Linear interpolation",
    "unsharp": "Unsharp mask",
    "unsharp_told": "Unsharp mask, told the level",
    "nlm": "Non-local means",
    "nlm_told": "Non-local means, told the level",
}
SPECIALISTS = {name: f"Level {level} alone" for level, name in enumerate(rivals.SPECIALISTS, 1)}

# Table 1, and the supplement's table for denoising: task → schedule → ((L2 in ‰, PSNR in dB) on CelebA, on SUN397).
TABLE1 = {
    "deblur": {
        "rigid_joint": ((1.58, 29.40), (2.32, 28.53)),
        "cumulative_curriculum": ((1.85, 28.70), (2.64, 27.86)),
        "cumulative_anti_curriculum": ((1.49, 29.31), (2.39, 28.34)),
        "staged_curriculum": ((125, 15.59), (133, 14.44)),
        "staged_anti_curriculum": ((5.54, 25.43), (6.27, 25.17)),
        "hard_mining": ((2.98, 27.33), (3.98, 26.35)),
        "on_demand": ((1.41, 29.58), (2.11, 28.70)),
    },
    "interpolate": {
        "rigid_joint": ((1.02, 31.86), (1.29, 31.98)),
        "cumulative_curriculum": ((1.11, 31.68), (1.36, 31.70)),
        "cumulative_anti_curriculum": ((1.01, 31.96), (1.25, 32.02)),
        "staged_curriculum": ((2.10, 28.51), (2.36, 28.13)),
        "staged_anti_curriculum": ((7.76, 27.82), (7.05, 27.76)),
        "hard_mining": ((1.85, 29.15), (1.82, 29.01)),
        "on_demand": ((0.95, 32.09), (1.19, 32.21)),
    },
    "inpaint": {
        "rigid_joint": ((1.05, 32.11), (1.80, 31.13)),
        "cumulative_curriculum": ((1.28, 31.47), (1.94, 30.75)),
        "cumulative_anti_curriculum": ((1.04, 31.90), (1.90, 30.44)),
        "staged_curriculum": ((1.18, 31.30), (1.87, 30.42)),
        "staged_anti_curriculum": ((4.80, 28.10), (4.35, 28.42)),
        "hard_mining": ((3.31, 29.47), (2.61, 29.83)),
        "on_demand": ((0.99, 32.30), (1.69, 31.38)),
    },
    "denoise": {  # the supplement's L2 is more than twice the error of its PSNR on the [0, 1] scale
        "rigid_joint": ((5.90, 26.38), (7.56, 25.69)),
        "cumulative_curriculum": ((6.10, 26.31), (7.73, 25.60)),
        "cumulative_anti_curriculum": ((5.90, 26.35), (7.57, 25.66)),
        "staged_curriculum": ((7.10, 24.74), (9.11, 23.87)),
        "staged_anti_curriculum": ((53.1, 21.19), (55.5, 19.66)),
        "hard_mining": ((6.53, 25.10), (8.52, 24.10)),
        "on_demand": ((5.79, 26.48), (7.49, 25.80)),
    },
}

# Table 2: method → ((L2 in %, PSNR in dB) of the central block, of an arbitrary block); as we read it, inside the
# missing region.
TABLE2 = {
    "context_encoder_center": ((0.83, 22.16), (6.84, 11.80)),
    "context_encoder_random": ((2.47, 16.18), (2.51, 16.20)),
    "on_demand": ((0.93, 20.74), (1.04, 20.31)),
}

# Table 3: PSNR in dB at σ = 25; the last two columns are the on-demand network and the model fixated at σ = 25.
TABLE3_SYSTEMS = ("ksvd", "bm3d", "mlp", "wnnm", "csf", "tnrd", "on_demand", "fixated")
TABLE3 = {
    image: dict(zip(TABLE3_SYSTEMS, row, strict=True))
    for image, row in {
        "Barbara": (29.49, 30.67, 29.21, 31.24, 28.95, 29.41, 28.92, 29.63),
        "Boat": (29.24, 29.86, 29.89, 30.03, 29.74, 29.92, 30.11, 30.15),
        "C.man": (28.64, 29.40, 29.32, 29.63, 29.29, 29.71, 29.41, 29.78),
        "Couple": (28.87, 29.68, 29.70, 29.82, 29.42, 29.71, 30.04, 30.02),
        "F.print": (27.24, 27.72, 27.50, 27.88, 27.02, 27.32, 27.81, 27.77),
        "Hill": (29.20, 29.81, 29.82, 29.95, 29.61, 29.80, 30.03, 30.04),
        "House": (32.08, 32.92, 32.50, 33.22, 32.16, 32.54, 33.14, 33.03),
        "Lena": (31.30, 32.04, 32.12, 32.24, 31.64, 32.01, 32.44, 32.36),
        "Man": (29.08, 29.58, 29.81, 29.76, 29.67, 29.88, 29.92, 29.96),
        "Montage": (30.91, 32.24, 31.85, 32.73, 31.07, 32.29, 32.34, 32.74),
        "Peppers": (29.69, 30.18, 30.25, 30.40, 30.12, 30.55, 30.29, 30.48),
    }.items()
}
