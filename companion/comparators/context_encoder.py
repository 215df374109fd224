"""Context encoders at 64×64, for the centre and with random region dropout (Sec. 6.5, Table 2).

Pathak, Krähenbühl, Donahue, Darrell, Efros, CVPR 2016. What the paper leaves open follows their released code.
"""

from dataclasses import asdict
from functools import partial

import torch
from torch import nn

from companion.comparators import INPAINTERS, holes
from companion.comparators.check import Run, learn
from companion.training.measurement import Measurement
from companion.training.results import Trained, path_of, train_and_evaluate, train_with
from odl import crops
from odl.corruptions import delete
from odl.device import adam, forward
from odl.evaluation import psnr, task_of
from odl.experiment import Experiment
from odl.learn import shuffled
from odl.network import NETWORKS, down, initialize, up

CELLS_PER_PIXEL = 0.06  # of the dropout pattern: blobs of about 17 pixels
DROPPED_SHARES = (0.2, 0.3)  # of the image, from and to
ADVERSARIAL_WEIGHT = 0.001  # in the loss; the squared error has the rest (Pathak's Eq. 3)
LEARNING_RATE = 2e-3  # of the encoder in their code
DISCRIMINATOR_RATE = 0.1  # as a share of the encoder's


def run_of(method: str, ours: Experiment) -> Run:
    """Return the run of a context encoder with the numbers of one of ours, at no lower rate than its authors'."""
    return Run(**(asdict(ours) | {"schedule": method, "learning_rate": max(LEARNING_RATE, ours.learning_rate)}))


class ContextEncoder(nn.Module):
    """Convolutions down to 4×4, a bottleneck of 4000 (at width 64), convolutions up to `side` 32 or 64.

    Input (B, 3, 64, 64) in [-1, 1], output (B, 3, side, side): the central block, or the whole image. Its opponent in
    training, `discriminator`, returns the logit of such an output being a photograph: (B, 1).
    """

    def __init__(self, side: int, width: int = 64):
        super().__init__()
        f, code = width, round(4000 * width / 64)
        # Their text: 128×128 with two layers of f; here: one, as their code has it for 64×64.
        self.encoder = nn.Sequential(  # (B, 3, 64, 64)
            nn.Conv2d(3, f, 4, 2, 1, bias=False),  # (B, f, 32, 32)
            nn.LeakyReLU(0.2),
            *down(f, 2 * f),  # (B, 2f, 16, 16)
            *down(2 * f, 4 * f),  # (B, 4f, 8, 8)
            *down(4 * f, 8 * f),  # (B, 8f, 4, 4)
        )
        self.bottleneck = nn.Sequential(
            *(nn.Conv2d(8 * f, code, 4, bias=False), nn.BatchNorm2d(code), nn.LeakyReLU(0.2)),  # (B, code, 1, 1)
            *(nn.ConvTranspose2d(code, 8 * f, 4, bias=False), nn.BatchNorm2d(8 * f), nn.ReLU()),  # (B, 8f, 4, 4)
        )
        last = f if side == 64 else 2 * f
        self.decoder = nn.Sequential(
            *up(8 * f, 4 * f),  # (B, 4f, 8, 8)
            *up(4 * f, 2 * f),  # (B, 2f, 16, 16)
            *(up(2 * f, f) if side == 64 else []),  # (B, f, 32, 32)
            nn.ConvTranspose2d(last, 3, 4, 2, 1, bias=False),  # (B, 3, side, side)
            nn.Tanh(),
        )

        halvings = ((f, 2 * f), (2 * f, 4 * f), (4 * f, 8 * f))[: 3 if side == 64 else 2]
        self.discriminator = nn.Sequential(  # (B, 3, side, side)
            nn.Conv2d(3, f, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2),
            *(module for widths in halvings for module in down(*widths)),  # (B, side · f / 8, 4, 4)
            nn.Conv2d(side * f // 8, 1, 4, bias=False),
            nn.Flatten(),
        )

    def forward(self, y):
        return self.decoder(self.bottleneck(self.encoder(y)))


def random_regions(n: int, generator) -> torch.Tensor:
    """Draw masks that are true in regions of arbitrary shape, 20–30 % of each image: (n, 1, 64, 64).

    Uniform noise on a coarse grid, enlarged (bicubic) at a random offset, and thresholded.
    """
    # Released code: one 10,000² pattern cut at 0.25, windows of it drawn until 20–30 % are missing, one for a whole
    # batch; here: a pattern per image, cut at the quantile of a share drawn from 20–30 %, because it needs no loop.
    size = crops.CROP
    # Offset < 1, and neighbours for the bicubic kernel; at the far end the last of them may be the border once more.
    cells = int(size * CELLS_PER_PIXEL) + 4
    u = torch.rand((n, cells * cells + 3), generator=generator, device=generator.device)
    low = u[:, 3:].view(n, 1, cells, cells)
    place = 1 + torch.arange(size, device=u.device) * CELLS_PER_PIXEL + u[:, :2].unsqueeze(2)  # (n, 2, size) in cells
    place = (2 * place + 1) / cells - 1  # grid_sample's scale: -1 and 1 are the outer borders
    across, down = place[:, 0, None, :].expand(n, size, size), place[:, 1, :, None].expand(n, size, size)
    grid = torch.stack([across, down], 3)  # (n, size, size, 2)
    noise = nn.functional.grid_sample(low, grid, mode="bicubic", padding_mode="border", align_corners=False)
    share = DROPPED_SHARES[0] + u[:, 2:3] * (DROPPED_SHARES[1] - DROPPED_SHARES[0])
    cut = noise.flatten(1).sort(1).values.gather(1, (share * size * size).long())  # (n, 1)
    return noise < cut.view(n, 1, 1, 1)


def masks_of(experiment: Run, n: int, generator) -> torch.Tensor:
    """Draw what is missing in training: the central block, or a random region per image."""
    if experiment.schedule == "context_encoder_center":
        return holes.block_masks("central", n, generator)
    return random_regions(n, generator)


def untrained(experiment: Experiment) -> nn.Module:
    """Return the network of a run, a context encoder's or one of ours, as PyTorch makes it."""
    if experiment.schedule not in INPAINTERS:
        return NETWORKS[experiment.network](task_of(experiment).channels, experiment.width)
    return ContextEncoder(32 if experiment.schedule == "context_encoder_center" else 64, experiment.width)


def build(experiment: Run, device):
    """Return the network with its initial weights and its Adam."""
    network = untrained(experiment)
    initialize(network, torch.Generator().manual_seed(crops.seed_of(experiment.seed, "weights")))
    network.to(device, memory_format=torch.channels_last)
    discriminator = list(network.discriminator.parameters())
    own = [p for name, p in network.named_parameters() if not name.startswith("discriminator")]
    groups = [{"params": own}, {"params": discriminator, "lr": DISCRIMINATOR_RATE * experiment.learning_rate}]
    return network, adam(groups, experiment.learning_rate, device)


def step(experiment: Run, network, optimizer, x, mask) -> torch.Tensor:
    """Take a step of the discriminator, then one of the encoder (Pathak's Eq. 1–3). Returns the squared error."""
    y, precision = delete(x, mask), experiment.precision
    x_hat = forward(network, y, precision)  # (B, 3, side, side)
    margin = (x.shape[-1] - x_hat.shape[-1]) // 2
    real = x[..., margin : margin + x_hat.shape[-1], margin : margin + x_hat.shape[-1]]
    discriminator = network.discriminator
    optimizer.zero_grad()
    loss = adversarial_loss(discriminator, real, 1.0, precision)
    (loss + adversarial_loss(discriminator, x_hat.detach(), 0.0, precision)).backward()
    optimizer.step()  # nothing but the discriminator has a gradient

    # Released code with random dropout: squared error over the whole image; here: over the hole as in Eq. 1, because
    # Table 2 measures nothing else.
    squared = 4 * holes.hole_error(holes.paste(x_hat, y, mask), x, mask).mean()  # on the [-1, 1] scale
    optimizer.zero_grad()
    discriminator.requires_grad_(False)
    deceived = adversarial_loss(discriminator, x_hat, 1.0, precision)
    ((1 - ADVERSARIAL_WEIGHT) * squared + ADVERSARIAL_WEIGHT * deceived).backward()
    discriminator.requires_grad_(True)
    optimizer.step()
    return squared.detach()


def adversarial_loss(discriminator, images, truth: float, precision) -> torch.Tensor:
    """Return the discriminator's cross-entropy on images that all are (1) or are not (0) photographs."""
    logits = forward(discriminator, images, precision)
    return nn.functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, truth))


def train(experiment: Run, device="cpu", progress=None) -> Trained:
    """Train one context encoder, resuming from its checkpoint if there is one.

    history: one dict an epoch with loss ([-1, 1] scale) and psnr (dB on the validation crops), both inside the hole.
    """
    return train_with(experiment, device, progress, build, partial(learn, batches, step, validate))


def batches(experiment: Run, pack, epoch: int):
    """Yield the batches of an epoch: clean crops (B, 3, 64, 64) in [-1, 1], and what is missing of them."""
    generator = torch.Generator(pack.offset.device).manual_seed(crops.seed_of(experiment.seed, epoch, "train"))
    order = shuffled(len(pack), experiment.iterations * experiment.batch_size, generator)
    for index in order.split(experiment.batch_size):
        yield crops.crop(pack, index, generator), masks_of(experiment, len(index), generator)


@torch.inference_mode()
def validate(experiment: Run, network, x) -> float:
    """Return mean PSNR in dB inside the hole on the validation crops, with the same holes every epoch."""
    generator = torch.Generator(x.device).manual_seed(crops.seed_of("validate", experiment.schedule))
    mask = masks_of(experiment, len(x), generator)
    fill = partial(holes.inpaint, network.eval(), precision=experiment.precision)
    return psnr(holes.errors(fill, x, mask, experiment.batch_size)).mean().item()


def measurement_of(experiment: Run) -> Measurement:
    """Return the measurement of a context encoder: it is trained, and tested on the blocks of Table 2."""
    work = 3 * experiment.epochs * experiment.iterations + holes.work_of(experiment)
    return Measurement(path_of(experiment), experiment, partial(train_and_evaluate, experiment, train, on_blocks), work)


def on_blocks(experiment: Run, trained: Trained, device, progress) -> dict:
    """Return the scores of a trained encoder, as its result holds them."""
    return {"evaluation": holes.evaluate(experiment, trained.network, device, progress).to_dict("list")}
