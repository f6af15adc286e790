"""Normalization of only those numbers that are far off the scale at which networks learn: other units, far from 0.

The first batch determines what is off scale, and that stays: a network cannot learn from inputs that change their
meaning. Sizes are those of the numbers other than 0, so that a flag that is rarely set is not small.
"""

import torch
from torch import Tensor

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.models.scales.moments import RunningMoments
from kubebeast_learner.ranks.group import sum_over_ranks

MIN_SIZE, MAX_SIZE = 0.01, 100.0
"""Sizes, as root mean squares, from which a network learns as it is."""
MAX_OFFSET = 10.0
"""Largest distance from 0, absolute and in standard deviations, from which a network learns as it is."""


class OffScaleMoments(RunningMoments):
    """Moments of the numbers of one leaf, by which only those are normalized that are off scale in the first batch."""

    is_decided: Tensor
    """bool scalar: True once the first batch has been added."""
    is_off_scale: Tensor
    """bool [*shape]."""

    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__(leaf.row_shape)
        self._unit = 255.0 if leaf.dtype == "uint8" else 1.0
        self.register_buffer("is_decided", torch.zeros((), dtype=torch.bool))
        self.register_buffer("is_off_scale", torch.zeros(leaf.row_shape, dtype=torch.bool))

    def describe_off_scale(self) -> str:
        """Returns "2 of 5 numbers"; "" if none is off scale. Waits for the device."""
        number = int(self.is_off_scale.sum())
        return f"{number} of {self.is_off_scale.numel()} numbers" if number else ""

    def forward(self, rows: Tensor) -> Tensor:
        """Maps [T, B, *shape] to float32: normalized, or as they are, bytes in [0, 1]."""
        return torch.where(self.is_off_scale, super().forward(rows), rows.float() / self._unit)

    @torch.no_grad()
    def add(self, rows: Tensor, counted: Tensor) -> None:
        """See `Scale.add`."""
        super().add(rows, counted)
        size, is_met = _size(rows, counted, num_axes=2)
        size = size / self._unit
        deviation = self.variance.sqrt() / self._unit
        is_far = self.mean.abs() / self._unit > MAX_OFFSET * deviation.clamp(min=1.0)
        is_off_scale = is_met & ((size < MIN_SIZE) | (size > MAX_SIZE) | is_far)
        self.is_off_scale.logical_or_(is_off_scale & ~self.is_decided)
        self.is_decided.logical_or_(self.count > 0)


def _size(rows: Tensor, counted: Tensor, num_axes: int) -> tuple[Tensor, Tensor]:
    """Returns the root mean squares of numbers other than 0 over the first axes, float64, and whether there are any.

    See `Scale.add` for the rows.
    """
    where = counted.view(*counted.shape, *[1] * (rows.ndim - 2)) & (rows != 0) & (rows.abs() <= LARGEST)
    squares = rows.double().square().masked_fill(~where, 0.0)
    axes = tuple(range(num_axes))
    number, total = sum_over_ranks(torch.stack([where.sum(axes, dtype=torch.float64), squares.sum(axes)]))
    return (total / number.clamp(min=1)).sqrt(), number > 0
