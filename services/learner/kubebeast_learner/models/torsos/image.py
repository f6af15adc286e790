"""Images as convolutions take them: rows of one observation leaf to [N, channels, height, width]."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_learner.models.torsos.base import Torso
from kubebeast_learner.spec import LeafSpec


@dataclass(frozen=True)
class ImageLayout:
    """Where channels, height and width stand in a row of an image leaf; the frames of a stack become channels."""

    axes: str
    """A letter for every axis of a row: h, w, c for channels, k for the frames of a stack."""
    channels: int
    """Of the whole stack."""
    height: int
    width: int

    @staticmethod
    def of(leaf: LeafSpec) -> "ImageLayout | None":
        """[H, W], [H, W, C], [C, H, W], or a stack of them, the frames first; None: not an image, or one whose channels
        stand nowhere that is known.
        """
        shape = tuple(leaf.row_shape)
        if len(shape) == 2 and leaf.frame_stack <= 1:
            return ImageLayout.from_axes("hw", shape)
        if len(shape) == 3:
            axes = "khw" if leaf.frame_stack > 1 else _colour_axes(shape)
        elif len(shape) == 4:
            axes = _colour_axes(shape[1:])
            axes = axes and "k" + axes
        else:
            axes = None
        return None if axes is None else ImageLayout.from_axes(axes, shape)

    @staticmethod
    def from_axes(axes: str, row_shape: Sequence[int]) -> "ImageLayout":
        """The layout `axes`, a letter for each of the row's axes, h and w among them."""
        sizes = dict(zip(axes, row_shape, strict=True))
        return ImageLayout(axes, sizes.get("k", 1) * sizes.get("c", 1), sizes["h"], sizes["w"])

    def __str__(self) -> str:
        return f"{self.height}x{self.width} with {self.channels} channels"

    def to_nchw(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """[T, B, *row_shape] to `dtype` [T * B, C, H, W] in channels_last memory, with the values they have."""
        order = [2 + self.axes.index(axis) for axis in "kchw" if axis in self.axes]
        images = rows.permute(0, 1, *order).reshape(-1, self.channels, self.height, self.width)
        # Converting first and transposing then is twice as fast on a CPU as one converting transposition.
        return images.to(dtype).contiguous(memory_format=torch.channels_last)


class ImageTorso(Torso):
    """Convolutions over one leaf."""

    def __init__(self, image: ImageLayout) -> None:
        super().__init__()
        self.image = image

    def reads_interleaved(self, observation: Sequence[LeafSpec]) -> list[bool]:
        """As in Torso. A stack of plain frames is then in channels_last memory already."""
        return [self.image.axes == "khw" and leaf.dtype == "uint8" for leaf in observation]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """As in Torso."""
        return [f"as an image of {self.image}" for _ in observation]

    def convolved(self, conv: nn.Conv2d, rows: Tensor) -> Tensor:
        """What `conv` makes of the images [T, B, *row_shape], [T * B, C, H, W]; uint8 pixels are scaled to [0, 1]."""
        images = self.image.to_nchw(rows, _compute_dtype(conv.weight))
        # The few weights are scaled instead of the many pixels, whose 0 to 255 bfloat16 holds exactly.
        weight = conv.weight / 255 if rows.dtype == torch.uint8 else conv.weight
        return F.conv2d(images, weight, conv.bias, conv.stride, conv.padding)


def _colour_axes(shape: tuple[int, ...]) -> str | None:
    """Where the channels of one frame stand: the axis that is shorter than the others, or that makes them a square."""
    first, middle, last = shape
    if last < min(first, middle) or first == middle != last:
        return "hwc"
    return "chw" if first < min(middle, last) or middle == last != first else None


def _compute_dtype(weight: Tensor) -> torch.dtype:
    """The dtype in which a layer with this weight computes: autocast's where it is on, else the weight's own."""
    device_type = weight.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else weight.dtype
