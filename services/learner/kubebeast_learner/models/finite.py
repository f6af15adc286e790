"""Detection of numbers that training cannot use: numbers that are not finite or have no finite square."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

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


def not_finite_in(learner: Mapping[str, Any]) -> str:
    """Describes the first tensor of the state of a learner that is not finite; "" if all are finite.

    An example is `learner.model.policy.bias holds nan`. Tensors that are not finite by design of the model's author,
    such as masks of -inf, are exempt. In the state of a version that did not note their names, every tensor of the
    model may contain -inf.
    """
    tensors = dict(named_tensors(learner, "learner"))
    if MADE_NOT_FINITE in learner:
        allowed = {f"learner.model.{name}" for name in learner[MADE_NOT_FINITE]}
    else:
        allowed = {name for name, tensor in tensors.items() if name.startswith("learner.model.") and _may_mask(tensor)}
    return first_not_finite(tensors.items(), allowed)


def named_tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yields all tensors in `value` with their dotted paths, which begin with `name`."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping | list | tuple):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from named_tensors(each, f"{name}.{key}" if name else str(key))


def _is_finite(tensor: Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    # NaN is the minimum and the maximum of all that contain it, and this reads the tensor once.
    return all(bool(extreme.isfinite()) for extreme in tensor.aminmax())


def _may_mask(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and bool((tensor.isfinite() | tensor.isneginf()).all())
