"""Conversion of rows of one observation leaf to images [N, channels, height, width] for convolutions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.machine.autocast import compute_dtype
from kubebeast_learner.models.torsos.base import InputKind, Torso

_TENSOR_CORE_CHANNELS = 8
"""Multiple of channels from which a GPU convolves bfloat16 on its tensor cores:
https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/
"""


@dataclass(frozen=True)
class ImageLayout:
    """Positions of channels, height and width in a row of an image leaf; the frames of a stack become channels."""

    axes: str
    """One letter per axis of a row: h, w, c for channels, k for the frames of a stack."""
    channels: int
    """Channels of the whole stack."""
    height: int
    width: int

    @staticmethod
    def of(leaf: LeafSpec) -> "ImageLayout | None":
        """Recognizes [H, W], [H, W, C], [C, H, W], or a stack of them with the frames first.

        Returns:
            The layout; None if the leaf is not an image or the position of its channels is ambiguous.
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
        """Returns the layout for `axes`, one letter per axis of a row; h and w are required."""
        sizes = dict(zip(axes, row_shape, strict=True))
        return ImageLayout(axes, sizes.get("k", 1) * sizes.get("c", 1), sizes["h"], sizes["w"])

    def __str__(self) -> str:
        return f"{self.height}x{self.width} with {self.channels} channels"

    @property
    def doubt(self) -> str:
        """Remark for the log if the shape alone leaves the position of the channels open; else empty."""
        is_cube = self.height == self.width == self.channels and "c" in self.axes
        return f", by its axes {self.axes}" if is_cube else ""

    def to_nchw(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """Converts rows [T, B, *row_shape] to `dtype` [T * B, C, H, W] in channels_last memory, values unchanged."""
        order = [2 + self.axes.index(axis) for axis in "kchw" if axis in self.axes]
        images = rows.permute(0, 1, *order).reshape(-1, self.channels, self.height, self.width)
        # On a CPU, converting and then transposing is twice as fast as one converting transposition.
        return images.to(dtype).contiguous(memory_format=torch.channels_last)


class ImageTorso(Torso):
    """Base class of torsos with convolutions over one leaf."""

    kind_of_bytes: ClassVar[InputKind] = "pixels"

    def __init__(self, image: ImageLayout) -> None:
        super().__init__()
        self.image = image

    def reads_interleaved(self, observation: Sequence[LeafSpec]) -> list[bool]:
        """See `Torso.reads_interleaved`. A stack of plain frames is then in channels_last memory already."""
        return [self.image.axes == "khw" and leaf.dtype == "uint8" for leaf in observation]

    def kinds(self, observation: Sequence[LeafSpec]) -> list[InputKind]:
        """See `Torso.kinds`."""
        kinds: dict[str, InputKind] = {"uint8": self.kind_of_bytes, "bool": "other"}
        return [kinds.get(leaf.dtype, "image") for leaf in observation]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """See `Torso.describe`."""
        return [f"as an image of {self.image}{self.image.doubt}" for _ in observation]

    def convolved(self, conv: nn.Conv2d, rows: Tensor) -> Tensor:
        """Applies `conv` to images [T, B, *row_shape]; returns [T * B, C, H, W]. uint8 pixels are scaled to [0, 1]."""
        images = self.image.to_nchw(rows, compute_dtype(conv.weight))
        # The few weights are scaled instead of the many pixels; bfloat16 holds 0 to 255 exactly.
        weight = conv.weight / 255 if rows.dtype == torch.uint8 else conv.weight
        if images.is_cuda and images.dtype == torch.bfloat16:
            images, weight = for_tensor_cores(images), for_tensor_cores(weight)
        return F.conv2d(images, weight, conv.bias, conv.stride, conv.padding)


def for_tensor_cores(tensor: Tensor) -> Tensor:
    """Returns [N, C, H, W] with channels of zeros up to a multiple of _TENSOR_CORE_CHANNELS."""
    return F.pad(tensor, (0, 0, 0, 0, 0, -tensor.shape[1] % _TENSOR_CORE_CHANNELS))


def _colour_axes(shape: tuple[int, ...]) -> str | None:
    """Returns the axes of one frame: channels are the axis shorter than the others, or the others form a square.

    Those of a cube are the last axis, as usual in gymnasium: MinAtar's Seaquest has 10 x 10 cells of 10 channels.
    """
    first, middle, last = shape
    if last < min(first, middle) or first == middle:
        return "hwc"
    return "chw" if first < min(middle, last) or middle == last != first else None
