"""Deleting pixels, blurring and noise with a tensor for every operation."""

import torch

from odl.corruptions import blur_matrix, delete, uniform


def delete_pixels(x, severity, generator):
    """Delete each pixel independently, all channels together."""
    u = uniform((len(x), 1, *x.shape[2:]), generator)
    return delete(x, (severity.view(-1, 1, 1, 1) / 100 - u).sign().clamp(min=0))  # 1.0 where u is below


def blur(x, severity, generator):
    """Separable Gaussian: one matrix across, one down."""
    sigma_y, sigma_x, radius = severity.unbind(1)
    matrices = blur_matrix(torch.cat([sigma_y, sigma_x]), torch.cat([radius, radius]), x.shape[-1])
    down, across = matrices.chunk(2)
    y = (x.flatten(1, 2) @ across.mT).view(x.shape)
    return down.unsqueeze(1) @ y


def add_noise(x, severity, generator, clip: bool = True):
    """Add white Gaussian noise, clipped to [0, 255] as 8-bit images demand."""
    noise = torch.randn(x.shape, generator=generator, device=x.device)
    y = x + noise * (severity.view(-1, 1, 1, 1) / 127.5)
    return y.clamp(-1, 1) if clip else y
