"""The paper's tasks, their levels and sizes, as data. Knows nothing else of this package."""

N_LEVELS = 5  # levels seen in training; level 6 is the extra-credit level of the tests (Sec. 6.2)
BATCH_SIZE = 100
CROP = 64  # side of the images that a network sees (pixels)

# Severity interval of levels 1…5 (Sec. 6.2), with our level 6, and the single severities of the fixated models
# (Sec. 6.4). Whoever adds a task of their own adds its row at run time.
TASKS = {
    "inpaint": {
        "title": "Image inpainting",
        "severity": "side of the missing square (pixels)",
        "levels": ((1, 6), (7, 12), (13, 18), (19, 24), (25, 30), (31, 36)),
        "easy": 5,
        "hard": 32,
    },
    "interpolate": {
        "title": "Pixel interpolation",
        "severity": "deleted pixels (%)",
        "levels": ((0, 15), (15, 30), (30, 45), (45, 60), (60, 75), (75, 90)),
        "easy": 10,
        "hard": 80,
    },
    "deblur": {
        "title": "Image deblurring",
        "severity": "blur width σ (pixels)",
        "levels": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)),
        "easy": 1,
        "hard": 5,
    },
    "denoise": {
        "title": "Image denoising",
        "severity": "noise σ (of 255)",
        "levels": ((0, 20), (20, 40), (40, 60), (60, 80), (80, 100), (100, 120)),
        "easy": 10,
        "hard": 90,
    },
}
AS_SHIPPED = {name: {**row} for name, row in TASKS.items()}  # the paper's four, whatever a reader adds or changes
DATASETS = ("demo", "bsds500", "celeba", "celeba10k", "sun397", "db11")  # names of sets that the companion can get
MASKED = ("inpaint", "interpolate")  # tasks with missing pixels, whose other pixels are undamaged
