"""Finiteness check for the state of a learner, before it is saved and after it is loaded."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from kubebeast_learner.models.finite import MADE_NOT_FINITE, first_not_finite


def not_finite_in(learner: Mapping[str, Any]) -> str:
    """Describes the first tensor of the state of a learner that is not finite; "" if all are finite.

    An example is `learner.model.policy.bias holds nan`. Tensors that are not finite by design of the model's author,
    such as masks of -inf, are exempt. In the state of a version that did not note their names, every tensor of the
    model may contain -inf.
    """
    tensors = dict(_tensors(learner, "learner"))
    if MADE_NOT_FINITE in learner:
        allowed = {f"learner.model.{name}" for name in learner[MADE_NOT_FINITE]}
    else:
        allowed = {name for name, tensor in tensors.items() if name.startswith("learner.model.") and _may_mask(tensor)}
    return first_not_finite(tensors.items(), allowed)


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yields all tensors in `value` with their dotted paths."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _tensors(each, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _tensors(each, f"{name}.{index}")


def _may_mask(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and bool((tensor.isfinite() | tensor.isneginf()).all())
