"""Images as convolutions take them: rows of one observation leaf to [N, channels, height, width]."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kubebeast_learner.models.base import LeafSpec

_MOST_COLOURS = 4


@dataclass(frozen=True)
class ImageLayout:
    """Where channels, height and width stand in a row of an image leaf."""

    axes: Literal["hw", "chw", "hwc"]
    channels: int
    height: int
    width: int

    @staticmethod
    def of(leaf: LeafSpec) -> "ImageLayout | None":
        """[H, W], [H, W, C] with at most 4 colours, or [k, H, W] (frames or channels first); None: not an image."""
        shape = tuple(leaf.row_shape)
        if len(shape) == 2 and leaf.frame_stack <= 1:
            return ImageLayout("hw", 1, *shape)
        if len(shape) != 3:
            return None
        if leaf.frame_stack <= 1 and shape[2] <= _MOST_COLOURS < shape[0]:
            return ImageLayout("hwc", shape[2], shape[0], shape[1])
        return ImageLayout("chw", *shape)

    def to_nchw(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """[T, B, *row_shape] to `dtype` [T * B, C, H, W] in channels_last memory; uint8 is scaled to [0, 1]."""
        images = rows.flatten(0, 1)
        if self.axes == "hw":
            images = images.unsqueeze(1)
        elif self.axes == "hwc":
            images = images.permute(0, 3, 1, 2)
        # Converting first and transposing then is twice as fast on a CPU as one converting transposition.
        images = images.to(dtype, copy=True)
        if rows.dtype == torch.uint8:
            images.div_(255)
        return images.contiguous(memory_format=torch.channels_last)


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The dtype in which a layer with this weight computes: autocast's where it is on, else the weight's own."""
    device_type = weight.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else weight.dtype
