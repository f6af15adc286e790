"""Detection of numbers that training cannot use: numbers that are not finite or have no finite square."""

from collections.abc import Collection, Iterable

from torch import Tensor

MADE_NOT_FINITE = "made_not_finite"
"""Key in a learner's state: names of model tensors that are not finite by construction, such as masks of -inf."""
LARGEST = 9e18
"""Largest magnitude at which the squared difference of two numbers is finite in float32, which ends at 3.4e38."""


def names_of_not_finite(tensors: Iterable[tuple[str, Tensor]]) -> list[str]:
    """Returns the names of the floating-point tensors that hold NaN or an infinite number."""
    return [name for name, tensor in tensors if not _is_finite(tensor)]


def first_not_finite(tensors: Iterable[tuple[str, Tensor]], allowed: Collection[str] = ()) -> str:
    """Describes the first tensor with NaN or an infinite number: `baseline.weight holds nan`. Returns "" without one.

    allowed: names of tensors to skip. Waits for the device of each tensor.
    """
    for name, tensor in tensors:
        if name not in allowed and not _is_finite(tensor):
            return f"{name} holds {tensor[~tensor.isfinite()][0].item()}"
    return ""


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())
