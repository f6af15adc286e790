"""The shallow convolutional torso: the network of Mnih et al. 2015 (doi:10.1038/nature14236), as in MonoBeast."""

import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_learner.models.torsos.image import ImageLayout, ImageTorso


class ShallowTorso(ImageTorso):
    """Three convolutions and a hidden layer of 512."""

    supports_bf16 = True
    smallest_side = 36
    """Smallest height and width of an image; below it, the output of the last convolution is empty."""

    def __init__(self, image: ImageLayout) -> None:
        super().__init__(image)
        self.conv1 = nn.Conv2d(image.channels, 32, kernel_size=8, stride=4)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=4, stride=2)
        self.conv3 = nn.Conv2d(64, 64, kernel_size=3, stride=1)
        height, width = image.height, image.width
        for conv in (self.conv1, self.conv2, self.conv3):
            height, width = ((side - conv.kernel_size[0]) // conv.stride[0] + 1 for side in (height, width))
        self.fc = nn.Linear(64 * height * width, 512)
        self.output_size = self.fc.out_features

    def forward(self, rows: Tensor) -> Tensor:
        """Maps [T, B, *row_shape] to float32 [T, B, 512]."""
        x = F.relu_(self.convolved(self.conv1, rows))
        x = F.relu_(self.conv2(x))
        x = F.relu_(self.conv3(x))
        x = F.relu_(self.fc(x.flatten(1)))
        return x.float().view(*rows.shape[:2], -1)
