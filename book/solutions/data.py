import numpy as np

rng = np.random.default_rng(0)
height, width, side = 96, 144, 64
tops, lefts = (rng.integers(0, length - side + 1, (2, 100_000)) for length in (height, width))
down, across = (side - abs(first - second) for first, second in (tops, lefts))
shared = np.maximum(down, 0) * np.maximum(across, 0) / side**2
print(f"two crops of one photograph share {shared.mean():.0%} of their pixels on average")
print(f"pairs that share nothing: {(shared == 0).mean():.0%}; more than half: {(shared > 0.5).mean():.0%}")
print(f"different crops of one photograph, flipped or not: {2 * (height - side + 1) * (width - side + 1):,}")
