"""DnCNN, a reference from after the paper, trained here."""

from torch import nn


class DnCNN(nn.Module):
    """Convolutions of 3×3 that estimate the noise, BatchNorm between them (Zhang et al., IEEE TIP 2017).

    Theirs for every σ at once has 20 layers, and σ up to 55; ours has 17, as for one σ, and σ up to 100, as Figure 6.
    Input and output (B, 1, H, W) on the [0, 1] scale.
    """

    def __init__(self):
        super().__init__()
        depth, width = 17, 64
        layers = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 2):
            layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        self.noise = nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, y):
        return y - self.noise(y)
