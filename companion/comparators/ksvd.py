"""K-SVD: each patch is a sum of few atoms of a dictionary that is learnt on the noisy image itself."""

import numpy as np
import torch
from torch.nn.functional import fold, unfold

from companion.comparators import check

PATCH = 8  # pixels of a side
ATOMS = 16  # of a side: 256 in all
ITERATIONS = 10
GAIN = 1.15  # × σ: the error of a pixel that a patch may keep, the paper's C
MAX_TRAINING_PATCHES = 65_000  # released code
SEED = 0
CODED_TOGETHER = 8192  # patches


@check.one_thread()
def denoise(y, sigma):
    """Learn a dictionary on the image's patches, code every patch by it to the noise's error, average them with y.

    Elad, Aharon, IEEE TIP 2006. What the paper leaves open follows the authors' released code.
    """
    noisy, s = check.noisy(y, sigma)
    noisy = torch.from_numpy(noisy)
    patches = unfold(noisy[None, None], PATCH)[0].T  # (N, 64), every one
    mean = patches.mean(1, keepdim=True)
    patches = patches - mean  # Paper: silent; released code: as here, atoms are for what is left without the mean
    order = torch.randperm(len(patches), generator=torch.Generator().manual_seed(SEED))
    dictionary = learn(patches[order[:MAX_TRAINING_PATCHES]], s)
    fitted = patches - pursue(patches, dictionary, GAIN * s)[2] + mean
    total, times = (fold(part.T[None], noisy.shape, PATCH)[0, 0] for part in (fitted, torch.ones_like(patches)))
    weight = 30 / (255 * s)  # of the noisy image against one patch: the paper's λ
    return ((weight * noisy + total) / (weight + times)).numpy()


def dct_dictionary() -> torch.Tensor:
    """Return the start: products of 16 cosines of 8 samples, finer in frequency than a DCT; unit atoms (64, 256)."""
    cosines = np.cos(np.outer(np.arange(PATCH), np.arange(ATOMS)) * np.pi / ATOMS)
    cosines[:, 1:] -= cosines[:, 1:].mean(0)
    cosines /= np.linalg.norm(cosines, axis=0)
    return torch.from_numpy(np.kron(cosines, cosines))


def learn(patches, s: float) -> torch.Tensor:
    """Code the patches (N, 64), improve one atom after the other, and begin again. Returns the dictionary (64, 256)."""
    dictionary = dct_dictionary()
    generator = torch.Generator().manual_seed(SEED)
    for _ in range(ITERATIONS):
        atoms, coefficients, residual = pursue(patches, dictionary, GAIN * s)
        users = users_of(atoms, dictionary.shape[1])
        for k in torch.randperm(dictionary.shape[1], generator=generator).tolist():
            if len(users[k][0]):
                improve(dictionary[:, k], coefficients, residual, *users[k])
        replace(dictionary, patches, residual, [len(rows) for rows, _ in users])
    return dictionary


def pursue(patches, dictionary, error: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Add the atom nearest to what is left, fit all atoms chosen so far, go on (orthogonal matching pursuit).

    A patch of (N, d) is done when the root mean square of what is left is at most `error`, or at d / 2 atoms.
    Returns atoms (N, d / 2), coefficients (N, d / 2), residual (N, d); beyond a patch's own number atoms are -1.
    """
    n, d = patches.shape
    found = torch.full((n, d // 2), -1), patches.new_zeros(n, d // 2), patches.clone()
    gram = dictionary.T @ dictionary  # (256, 256)
    for part, atoms, coefficients, residual in zip(*(t.split(CODED_TOGETHER) for t in (patches, *found)), strict=True):
        inner, active = part @ dictionary, torch.arange(len(part))  # (n, 256), (n,)
        for k in range(d // 2):  # those that are not done have the same number of atoms
            active = active[residual[active].pow(2).sum(1) > d * error**2]
            nearness, nearest = (residual[active] @ dictionary).abs().max(1)
            active, nearest = active[nearness > 1e-9], nearest[nearness > 1e-9]  # the rest is beyond what atoms span
            if not len(active):
                break
            atoms[active, k] = nearest
            chosen = atoms[active, : k + 1]
            fit = torch.linalg.solve(gram[chosen[:, :, None], chosen[:, None]], inner[active].gather(1, chosen))
            coefficients[active, : k + 1] = fit
            residual[active] = part[active] - torch.einsum("nk,nkd->nd", fit, dictionary.T[chosen])
    return found


def users_of(atoms, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return for each atom the rows and columns of atoms (N, m) where it is chosen."""
    rows, columns = (atoms >= 0).nonzero(as_tuple=True)
    chosen = atoms[rows, columns]
    order, times = chosen.argsort(stable=True), chosen.bincount(minlength=count).tolist()
    return list(zip(rows[order].split(times), columns[order].split(times), strict=True))


def improve(atom, coefficients, residual, rows, columns) -> None:
    """Set an atom (64,) and its coefficients to the best rank-one fit of what is left without it."""
    left = residual[rows] + coefficients[rows, columns, None] * atom  # (users, 64)
    atom[:] = torch.linalg.eigh(left.T @ left)[1][:, -1]  # first right singular vector
    coefficients[rows, columns] = left @ atom
    residual[rows] = left - coefficients[rows, columns, None] * atom


def replace(dictionary, patches, residual, times) -> None:
    """Replace atoms chosen at most 3 times, and those that repeat another, by the patches that are fitted worst."""
    # Paper: silent; released code: as here.
    error = residual.pow(2).sum(1)
    for k, chosen in enumerate(times):
        likeness = (dictionary.T @ dictionary[:, k]).abs()
        likeness[k] = 0
        if chosen <= 3 or likeness.max() > 0.99:
            worst = error.argmax()
            error[worst] = 0
            dictionary[:, k] = patches[worst] / patches[worst].norm().clamp(min=1e-12)
