"""All violations that keep a space from being sent; the env-server exits at the first."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnasium import spaces

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError, leaves_of


def space_violations(
    space: spaces.Space[Any], leaves: Callable[[spaces.Space[Any]], list[Leaf]] = leaves_of
) -> list[str]:
    """Returns the reasons for which `leaves` rejects a space, one for each of its parts; empty if it does not."""
    try:
        leaves(space)
    except UnsupportedSpaceError as error:
        parts = _parts(space)
        found = [f"at {key!r}: {text}" for key, part in parts.items() for text in space_violations(part, leaves)]
        return found or [str(error)]
    return []


def _parts(space: spaces.Space[Any]) -> Mapping[Any, spaces.Space[Any]]:
    match space:
        case spaces.Dict():
            return space.spaces
        case spaces.Tuple():
            return dict(enumerate(space.spaces))
        case _:
            return {}
