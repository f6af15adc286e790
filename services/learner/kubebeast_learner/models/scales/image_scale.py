"""One scale for all numbers of an image, which the first batch determines, if they are far off that of networks."""

from typing import ClassVar

import torch
from torch import Tensor

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.machine.autocast import compute_dtype
from kubebeast_learner.models.finite import LARGEST
from kubebeast_learner.models.scales.moments import Scale, exact
from kubebeast_learner.models.scales.off_scale import MAX_OFFSET, MIN_SIZE
from kubebeast_learner.ranks.group import sum_over_ranks

SMALL_BYTES = 0.1
"""Size, as a part of 255, below which bytes do not use their range: cells that hold the number of a kind of thing."""
MAX_SIZE = 10.0
"""Size of other numbers above which they are neither in [0, 1] nor standardized."""
_MIN_DEVIATION = 1e-6
"""Smallest standard deviation, as a part of the distance from 0: float32 has no smaller differences."""


class ImageScale(Scale):
    """A shift and a divisor, so that zeros stay zeros unless the image is far from 0."""

    goes_on: ClassVar[bool] = False
    shift: Tensor
    """float64 scalar."""
    divisor: Tensor
    """float32 scalar."""
    is_off_scale: Tensor
    """bool scalar."""
    is_decided: Tensor
    """bool scalar: True once a number other than 0 has been added."""

    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__()
        self._is_of_bytes = leaf.dtype == "uint8"
        self._unit, self._min_size = (255.0, SMALL_BYTES) if self._is_of_bytes else (1.0, MIN_SIZE)
        self.register_buffer("shift", torch.zeros((), dtype=torch.float64))
        self.register_buffer("divisor", torch.tensor(self._unit))
        self.register_buffer("is_off_scale", torch.zeros((), dtype=torch.bool))
        self.register_buffer("is_decided", torch.zeros((), dtype=torch.bool))

    @property
    def has_begun(self) -> Tensor:
        """See `Scale.has_begun`."""
        return self.is_decided

    def describe_off_scale(self) -> str:
        """Returns "bytes of size 3.2"; "" if they are on scale. Waits for the device."""
        if not self.is_off_scale:
            return ""
        shift, divisor = float(self.shift), float(self.divisor)
        numbers = "bytes" if self._is_of_bytes else "numbers"
        return f"{numbers} of size {divisor:.2g}" + (f" around {shift:.2g}" if shift else "")

    def forward(self, rows: Tensor) -> Tensor:
        """Maps [T, B, *row_shape] to floats in the memory layout of the rows; bfloat16 if convolutions are."""
        rows = exact(rows)
        return ((rows - self.shift.to(rows.dtype)).float() / self.divisor).to(compute_dtype(self.divisor))

    @torch.no_grad()
    def add(self, rows: Tensor, counted: Tensor) -> None:
        """See `Scale.add`."""
        where = counted.view(*counted.shape, *[1] * (rows.ndim - 2)) & (rows.abs() <= LARGEST)
        numbers = rows.double().masked_fill(~where, 0.0)
        sums = torch.stack([where.double().sum(), (numbers != 0).double().sum(), numbers.sum(), numbers.square().sum()])
        num_counted, num_met, total, squares = sum_over_ranks(sums)
        size = (squares / num_met.clamp(min=1)).sqrt()
        mean = total / num_counted.clamp(min=1)
        deviation = (squares / num_counted.clamp(min=1) - mean.square()).clamp(min=0).sqrt()

        is_far = mean.abs() > MAX_OFFSET * deviation.clamp(min=self._unit)
        is_of_other_size = (size < self._min_size * self._unit) | (size > MAX_SIZE * self._unit)
        is_off_scale = (num_met > 0) & ~self.is_decided & (is_far | is_of_other_size)
        self.shift.copy_(torch.where(is_off_scale & is_far, mean, self.shift))
        divisor = torch.where(is_far, deviation.clamp(min=_MIN_DEVIATION * mean.abs()), size)
        self.divisor.copy_(torch.where(is_off_scale, divisor.float(), self.divisor))
        self.is_off_scale.logical_or_(is_off_scale)
        self.is_decided.logical_or_(num_met > 0)
