"""Removal of texts beside other observations, such as MiniGrid's mission: they have no array form."""

from typing import Any

import numpy as np
from gymnasium import spaces

from kubebeast_envserver.rows.advice import advise


def without_texts(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Returns the space without those entries of Dicts that are texts; unchanged if nothing else would be left.

    Observations keep their texts: code that reads them by the keys of the space ignores these. Advises of each text.
    """
    places: list[str] = []
    rest = _without_texts(space, (), places)
    if rest is None:
        return space
    for place in places:
        advise(
            f"the observation at {place!r} is a text, which is not sent to the learner: an agent that has to read it "
            "needs a wrapper that encodes it in numbers"
        )
    return rest if places else space


def _without_texts(space: spaces.Space[Any], path: tuple[str, ...], places: list[str]) -> spaces.Space[Any] | None:
    """Returns the rest of a space; None for a text or a Dict of texts only. Appends the paths of texts to `places`."""
    if _is_text(space):
        places.append(".".join(path))
        return None
    if not isinstance(space, spaces.Dict) or not space.spaces:
        return space
    parts = {key: _without_texts(entry, (*path, str(key)), places) for key, entry in space.spaces.items()}
    rest = {key: part for key, part in parts.items() if part is not None}
    return spaces.Dict(rest) if rest else None


def _is_text(space: Any) -> bool:
    """Returns True for gymnasium's Text, and for other spaces with the dtype str."""
    if isinstance(space, spaces.Text):
        return True
    return isinstance(space, spaces.Space) and space.dtype is not None and np.dtype(space.dtype).kind == "U"
