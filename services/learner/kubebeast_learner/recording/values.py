"""Checks of values that a file has as JSON. Each returns the value, or raises ValueError with the reason."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kubebeast_learner.run.state import MAX_COUNT

ValueT = TypeVar("ValueT")


class Values:
    """Values by name; an invalid one raises ValueError with its name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __call__(self, name: str, read: Callable[[object], ValueT]) -> ValueT:
        if name not in self._values:
            raise ValueError(f"there is no {name}")
        try:
            return read(self._values[name])
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{name}: {error}") from error


def list_of(read: Callable[[object], ValueT], value: object, length: int) -> list[ValueT]:
    values = [read(each) for each in a_list(value)]
    if len(values) != length:
        raise ValueError(f"has {len(values)} values, not {length}")
    return values


def a_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.50} is no list")
    return value


def a_mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.50} is no mapping")
    return value


def a_text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"{value!r:.50} is no printable text")
    return value


def a_count(value: object, most: int = MAX_COUNT) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.50} is no count up to {most}")
    return value


def a_positive(value: object) -> int:
    if a_count(value) == 0:
        raise ValueError("must be at least 1")
    return a_count(value)
