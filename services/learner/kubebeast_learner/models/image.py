"""Images as convolutions take them: rows of one observation leaf to [N, channels, height, width]."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kubebeast_learner.spec import LeafSpec


@dataclass(frozen=True)
class ImageLayout:
    """Where channels, height and width stand in a row of an image leaf; the frames of a stack become channels."""

    axes: Literal["hw", "chw", "hwc", "kchw", "khwc"]
    """k are the frames of a stack."""
    channels: int
    """Of the whole stack."""
    height: int
    width: int

    @staticmethod
    def of(leaf: LeafSpec) -> "ImageLayout | None":
        """[H, W], [H, W, C], [C, H, W], or a stack of them; None: not an image, or one whose channels stand nowhere
        that is known.
        """
        shape = tuple(leaf.row_shape)
        if len(shape) == 2 and leaf.frame_stack <= 1:
            return ImageLayout("hw", 1, *shape)
        if len(shape) == 3:
            axes = "chw" if leaf.frame_stack > 1 else _colour_axes(shape)
            if axes == "hwc":
                return ImageLayout("hwc", shape[2], shape[0], shape[1])
            return None if axes is None else ImageLayout("chw", *shape)
        if len(shape) == 4:
            axes = _colour_axes(shape[1:])
            if axes == "hwc":
                return ImageLayout("khwc", shape[0] * shape[3], shape[1], shape[2])
            return None if axes is None else ImageLayout("kchw", shape[0] * shape[1], shape[2], shape[3])
        return None

    def __str__(self) -> str:
        return f"{self.height}x{self.width} with {self.channels} channels"

    def to_nchw(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """[T, B, *row_shape] to `dtype` [T * B, C, H, W] in channels_last memory; uint8 is scaled to [0, 1]."""
        images = rows.flatten(0, 1)
        if self.axes == "hw":
            images = images.unsqueeze(1)
        elif self.axes == "hwc":
            images = images.permute(0, 3, 1, 2)
        elif self.axes == "kchw":
            images = images.flatten(1, 2)
        elif self.axes == "khwc":
            images = images.permute(0, 1, 4, 2, 3).flatten(1, 2)
        # Converting first and transposing then is twice as fast on a CPU as one converting transposition.
        images = images.to(dtype, copy=True)
        if rows.dtype == torch.uint8:
            images.div_(255)
        return images.contiguous(memory_format=torch.channels_last)


def _colour_axes(shape: tuple[int, ...]) -> Literal["chw", "hwc"] | None:
    """Where the channels of one frame stand: the axis that is shorter than the others, or that makes them a square."""
    first, middle, last = shape
    if last < min(first, middle) or first == middle != last:
        return "hwc"
    return "chw" if first < min(middle, last) or middle == last != first else None


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The dtype in which a layer with this weight computes: autocast's where it is on, else the weight's own."""
    device_type = weight.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else weight.dtype
