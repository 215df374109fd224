"""Weighted nuclear norm minimization, the paper's WCNN: groups of similar patches are almost of low rank."""

import torch
from torch.nn.functional import fold, pad, unfold

from companion.comparators import check

SETTINGS = (  # σ up to, side of a patch, patches in a group, iterations, share of the estimated noise (released code)
    (20, 6, 70, 8, 0.54),
    (40, 7, 90, 12, 0.56),
    (60, 8, 120, 14, 0.58),
    (255, 9, 140, 14, 0.58),
)
C = 2 * 2**0.5  # Paper: this; public copies of the released code: √2, which leaves noise behind here
PUT_BACK = 0.1  # of the removed noise, before each iteration: the paper's δ
WINDOW_REACH = 30  # patches to every side among which similar ones are sought
STEP = 3  # Released code: half a side less 1, so 2 for σ <= 40; here: 3, because that is faster
MATCHED_TOGETHER = 32  # key patches
DECOMPOSED_TOGETHER = 1024  # groups


@check.one_thread()
def denoise(y, sigma):
    """Shrink the singular values of each group of similar patches, small ones most, and average; again and again.

    Gu, Zhang, Zuo, Feng, CVPR 2014. What the paper leaves open follows the authors' released code.
    """
    noisy, s = check.noisy(y, sigma, side=16)
    side, count, iterations, share = next(row for most, *row in SETTINGS if sigma <= most)
    noisy = torch.from_numpy(noisy).float()
    x_hat, start = noisy, patches_of(noisy, side)
    for i in range(iterations):
        x_hat = x_hat + PUT_BACK * (noisy - x_hat)
        patches = patches_of(x_hat, side)
        if i % 2 == 0:  # fewer patches a group as the noise falls
            count -= 10
            keys, groups = match(patches, count)
        left = share * (s**2 - (start - patches).pow(2).mean(2)).abs().sqrt()  # σ in each patch: (h, w)
        left = torch.full_like(left, s) if i == 0 else left
        x_hat = average(patches, groups, left.flatten()[keys], noisy.shape)
    return x_hat.double().numpy()


def patches_of(x, side: int) -> torch.Tensor:
    """Return every patch of an image (H, W): (h, w, side²)."""
    h, w = (length - side + 1 for length in x.shape)
    return unfold(x[None, None], side)[0].T.reshape(h, w, -1)


def key_positions(length: int) -> torch.Tensor:
    """Return every STEP-th position, and all that remain at the end."""
    grid = torch.arange(0, length, STEP)
    return torch.cat([grid, torch.arange(grid[-1] + 1, length)])


def match(patches, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Find for each key patch of a grid the `count` nearest of its window: indices (K,) and (K, count)."""
    h, w, d = patches.shape
    span = 2 * WINDOW_REACH + 1
    rows, columns = map(key_positions, (h, w))
    padded = pad(patches, (0, 0, *[WINDOW_REACH] * 4))  # (h + 60, w + 60, d)
    square = pad(patches.pow(2).sum(2), [WINDOW_REACH] * 4, value=torch.inf)  # the frame is infinitely far
    offset = torch.arange(span)
    groups = []
    for row in rows.tolist():
        for part in columns.split(MATCHED_TOGETHER):
            left, right = part[0].item(), part[-1].item() + span
            window = padded[row : row + span, left:right]
            inner = patches[row, part] @ window.reshape(-1, d).T  # (keys, span · width)
            distance = square[row : row + span, left:right] - 2 * inner.view(len(part), span, -1)  # + a constant
            own = (part - left)[:, None, None] + offset  # (keys, 1, span): the columns of each key's window
            distance = distance.gather(2, own.expand(-1, span, -1)).flatten(1)
            distance[:, WINDOW_REACH * (span + 1)] = -torch.inf  # the key patch itself is always in its group
            nearest = distance.topk(min(count, h * w), largest=False, sorted=False).indices
            place = (row - WINDOW_REACH + nearest // span) * w + part[:, None] - WINDOW_REACH + nearest % span
            groups.append(place)
    return (rows[:, None] * w + columns).flatten(), torch.cat(groups)


def average(patches, groups, sigma, shape) -> torch.Tensor:
    """Return the image (H, W) whose pixels are the means of all shrunk patches over them; sigma: (K,)."""
    h, w, d = patches.shape
    flat = patches.view(-1, d)
    total = torch.zeros_like(flat)
    for group, s in zip(groups.split(DECOMPOSED_TOGETHER), sigma.split(DECOMPOSED_TOGETHER), strict=True):
        total.index_add_(0, group.flatten(), shrink(flat[group], s).view(-1, d))
    times = groups.flatten().bincount(minlength=h * w).float()[:, None].expand(-1, d)
    side = round(d**0.5)
    total, times = (fold(part.T[None], shape, side)[0, 0] for part in (total, times))
    return total / times


def shrink(groups, sigma) -> torch.Tensor:
    """Shrink the singular values of groups (B, n, d) of patches about the mean patch; sigma: (B,)."""
    mean = groups.mean(1, keepdim=True)
    y = groups - mean
    wide = y.shape[1] > y.shape[2]
    gram = y.mT @ y if wide else y @ y.mT
    square, vectors = torch.linalg.eigh(gram)  # an eigenvalue is a squared singular value
    s = square.clamp(min=0).sqrt()
    gain = singular_values(s, sigma[:, None], y.shape[1]) / s.clamp(min=1e-12)
    projector = (vectors * gain[:, None]) @ vectors.mT
    return mean + (y @ projector if wide else projector @ y)


def singular_values(s, sigma, n: int) -> torch.Tensor:
    """Return singular values s less σ² w, with the weights w = C √n / x of the result x, for groups of n patches."""
    # Paper: some rounds of reweighting, begun from √(s² - n σ²); here: where reweighting begun from s ends, because
    # that has a closed form: 0, or the larger root of x² - s x + C √n σ².
    root = s**2 - 4 * C * n**0.5 * sigma**2
    return torch.where(root > 0, (s + root.clamp(min=0).sqrt()) / 2, 0)
