"""The torso for images too small for the shallow one: grid worlds, boards, small screens."""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_learner.models.torsos.base import InputKind
from kubebeast_learner.models.torsos.image import ImageLayout, ImageTorso


class SmallTorso(ImageTorso):
    """Two convolutions, the second at half the resolution, and a hidden layer of 128.

    About the size of MinAtar's network for 10x10 cells (Young & Tian 2019, arXiv:1903.03176).
    """

    kind_of_bytes: ClassVar[InputKind] = "cells"

    def __init__(self, image: ImageLayout) -> None:
        super().__init__(image)
        self.conv1 = nn.Conv2d(image.channels, 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1, stride=2)
        self.fc = nn.Linear(32 * ((image.height + 1) // 2) * ((image.width + 1) // 2), 128)
        self.output_size = self.fc.out_features
        for layer in (self.conv1, self.conv2, self.fc):
            # Keeps the scale of the input (He et al. 2015, arXiv:1502.01852). PyTorch's defaults shrink it so much that
            # hardly anything is learned from one lit cell of a board.
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, rows: Tensor) -> Tensor:
        """Maps [T, B, *row_shape] to float32 [T, B, 128]."""
        x = F.relu_(self.convolved(self.conv1, rows))
        x = F.relu_(self.conv2(x))
        x = F.relu_(self.fc(x.flatten(1)))
        return x.view(*rows.shape[:2], -1)
