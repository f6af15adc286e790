"""The deep residual torso (Espeholt et al. 2018, arXiv:1802.01561, figure 3 right)."""

import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_learner.models.torsos.image import ImageLayout, ImageTorso

_SECTION_CHANNELS = (16, 32, 32)


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu_(self.conv1(F.relu(x)))
        return self.conv2(hidden).add_(x)  # type: ignore[no-any-return]


class DeepTorso(ImageTorso):
    """Three sections of convolution, max-pooling and two residual blocks, then a hidden layer of 256."""

    supports_bf16 = True

    def __init__(self, image: ImageLayout) -> None:
        super().__init__(image)
        sections: list[nn.Module] = []
        channels, height, width = image.channels, image.height, image.width
        for section_channels in _SECTION_CHANNELS:
            sections += [
                nn.Conv2d(channels, section_channels, kernel_size=3, padding=1),
                nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
                ResidualBlock(section_channels),
                ResidualBlock(section_channels),
            ]
            channels, height, width = section_channels, (height + 1) // 2, (width + 1) // 2
        self.sections = nn.Sequential(*sections)
        self.fc = nn.Linear(channels * height * width, 256)
        self.output_size = self.fc.out_features

    def forward(self, rows: Tensor) -> Tensor:
        """Maps [T, B, *row_shape] to float32 [T, B, 256]."""
        x = self.convolved(self.sections[0], rows)  # type: ignore[arg-type]
        x = F.relu_(self.sections[1:](x))
        x = F.relu_(self.fc(x.flatten(1)))
        return x.float().view(*rows.shape[:2], -1)
