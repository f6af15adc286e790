"""Forms of action masks, and the categories that masks of each form allow.

gymnasium's forms are those of Space.sample(mask=...) (https://gymnasium.farama.org/api/spaces/fundamental/): an array
[n] for a Discrete; a tuple of such arrays for a MultiDiscrete, nested like its nvec; 0, 1 or 2 for each bit of a
MultiBinary, in which 2 leaves it free; a tuple or dict of masks for a Tuple or Dict. Besides these, the whole or any
part may be one array, with an element for each category in wire order.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kubebeast_envserver.rows.spaces import Array, UnsupportedSpaceError

FREE = 2
"""Element for a free bit of a MultiBinary in gymnasium's form: both values are allowed."""


@dataclass(frozen=True, slots=True)
class MaskArray:
    """One array of a mask."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    holds_free: bool
    """True if FREE may be among its elements."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


Form = MaskArray | tuple["Form", ...] | dict[Any, "Form"]


def form_of_space(space: spaces.Space[Any], where: str) -> Form:
    """Returns the form of the space of a mask. `where` is its path.

    Raises UnsupportedSpaceError for a space of something other than arrays.
    """
    match space:
        case spaces.Dict():
            return {key: form_of_space(entry, f"{where}.{key}") for key, entry in space.spaces.items()}
        case spaces.Tuple():
            return tuple(form_of_space(entry, f"{where}.{index}") for index, entry in enumerate(space.spaces))
        case spaces.Box():
            return MaskArray(space.dtype, space.shape, bool((space.high >= FREE).all()))
        case spaces.MultiDiscrete():
            return MaskArray(space.dtype, space.shape, bool((space.start + space.nvec > FREE).all()))
        case spaces.MultiBinary():
            return MaskArray(np.dtype(space.dtype), space.shape, False)
        case _:
            raise UnsupportedSpaceError(f"the action mask at {where!r} is {space!r}, which is no array of 0 and 1")


def form_of_value(value: Any) -> Form:
    """Returns the form of a mask in an environment's `info`; None stands for the mask of a part without categories."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return {key: form_of_value(entry) for key, entry in value.items()}
    if not isinstance(value, tuple):
        try:
            array = np.asarray(value)
        except ValueError:  # lists of several lengths
            return tuple(map(form_of_value, value))
        return MaskArray(array.dtype, array.shape, True)
    return tuple(map(form_of_value, value))


def elements(form: Form, mask: Any, num_rows: int) -> Array:
    """Returns [num_rows, m]: the elements of all arrays of a batch of masks, in wire order. One mask is one row."""
    arrays = [np.asarray(array).reshape(num_rows, -1) for array in _arrays(form, mask)]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.zeros((num_rows, 0), np.bool_), *arrays], axis=1)


def _arrays(form: Form, mask: Any) -> Iterator[Any]:
    match form:
        case MaskArray():
            yield mask
        case tuple():
            for index, part in enumerate(form):
                yield from _arrays(part, mask[index])
        case _:
            for key in sorted(form):
                yield from _arrays(form[key], mask[key])


class MaskPlan:
    """Mapping of the elements of masks of one form to the categories of one action space."""

    def __init__(self, action: spaces.Space[Any], form: Form, where: str) -> None:
        """`where` is the path of the mask. Raises UnsupportedSpaceError, with the expected form, for a part that does
        not fit.
        """
        self._source: list[int] = []
        self._forbidding: list[int] = []
        self._num_elements = 0
        if num_categories(action) == 0:
            raise _misfit(where, _describe(form), action)
        self._take(action, form, where)
        self._by_category = np.array(self._source, np.int64), np.array(self._forbidding, np.int64)

    @property
    def num_categories(self) -> int:
        return len(self._source)

    def allowed(self, elements: Array) -> NDArray[np.bool_]:
        """Returns bool [B, n]: categories that the masks, [B, m], allow."""
        source, forbidding = self._by_category
        result: NDArray[np.bool_] = elements[:, source] != forbidding
        return result

    def _take(self, action: spaces.Space[Any], form: Form, where: str) -> None:
        if isinstance(form, MaskArray):
            self._take_array(action, form, where)
            return
        for part, mask, place in _parts(action, form, where):
            self._take(part, mask, place)

    def _take_array(self, action: spaces.Space[Any], array: MaskArray, where: str) -> None:
        if array.dtype.kind not in "iub":
            more = ": probabilities are no mask" if array.dtype.kind == "f" else ""
            raise _misfit(where, str(array), action, more)
        first, size = self._num_elements, array.size
        self._num_elements += size
        if size == num_categories(action):
            self._source += range(first, first + size)
            self._forbidding += [0] * size
        elif isinstance(action, spaces.MultiBinary) and size * 2 == num_categories(action):
            if not array.holds_free:
                raise _misfit(
                    where, f"{array} of 0 and 1", action, f": in gymnasium's form {FREE} is a bit's free choice"
                )
            self._source += [first + index // 2 for index in range(2 * size)]
            self._forbidding += [1, 0] * size
        else:
            raise _misfit(where, str(array), action)


def num_categories(action: spaces.Space[Any]) -> int:
    """Returns the number of categories in all choices of an action space."""
    match action:
        case spaces.Dict():
            return sum(map(num_categories, action.spaces.values()))
        case spaces.Tuple():
            return sum(map(num_categories, action.spaces))
        case spaces.Discrete():
            return int(action.n)
        case spaces.MultiDiscrete():
            return int(action.nvec.sum())
        case spaces.MultiBinary():
            return 2 * math.prod(action.shape)
        case _:
            return 0


_Part = tuple[spaces.Space[Any], Form, str]


def _parts(action: spaces.Space[Any], form: tuple[Form, ...] | dict[Any, Form], where: str) -> list[_Part]:
    """Returns the parts of an action, in wire order, with their masks. Raises UnsupportedSpaceError if they do not
    match.
    """
    if isinstance(form, dict):
        return _parts_of_dict(action, form, where)
    choices = _entries(action)
    if choices is None:
        if not form and num_categories(action) == 0:
            return []
        raise _misfit(where, _describe(form), action)
    if len(form) != len(choices):
        choices = [choice for choice in choices if num_categories(choice)]
    if len(form) != len(choices):
        raise _misfit(where, _describe(form), action)
    return [(choice, mask, f"{where}.{index}") for index, (choice, mask) in enumerate(zip(choices, form, strict=True))]


def _parts_of_dict(action: spaces.Space[Any], form: dict[Any, Form], where: str) -> list[_Part]:
    if not isinstance(action, spaces.Dict) or form.keys() - action.spaces.keys():
        raise _misfit(where, _describe(form), action)
    missing = [key for key, part in action.spaces.items() if key not in form and num_categories(part)]
    if missing:
        raise _misfit(where, _describe(form), action, f": {missing[0]!r} has none")
    return [(action[key], form[key], f"{where}.{key}") for key in sorted(action.spaces) if key in form]


def _entries(action: spaces.Space[Any]) -> Sequence[spaces.Space[Any]] | None:
    """Returns the spaces for the entries of a tuple of masks; None for an action without such entries."""
    match action:
        case spaces.Tuple():
            return action.spaces
        case spaces.MultiDiscrete() if action.nvec.ndim == 1:
            return [spaces.Discrete(int(n)) for n in action.nvec]
        case spaces.MultiDiscrete():
            return [spaces.MultiDiscrete(nvec) for nvec in action.nvec]
        case _:
            return None


def _describe(form: Form) -> str:
    if isinstance(form, dict):
        return f"a dict of {', '.join(map(repr, form)) or 'nothing'}"
    return str(form) if isinstance(form, MaskArray) else f"a tuple of {len(form)}"


def _misfit(where: str, given: str, action: spaces.Space[Any], more: str = "") -> UnsupportedSpaceError:
    return UnsupportedSpaceError(
        f"the action mask at {where!r} is {given}, but a mask of {action} has {_expected(action)}{more}. If it is "
        "no mask, give it another key"
    )


def _expected(action: spaces.Space[Any]) -> str:
    number = num_categories(action)
    if number == 0:
        return "nothing, as numbers are not masked"
    flat = f"whole numbers [{number}], one a category"
    match action:
        case spaces.Dict():
            masked = ", ".join(repr(key) for key, part in action.spaces.items() if num_categories(part))
            return f"{flat}, or a dict with the masks of {masked}"
        case spaces.MultiBinary():
            return f"{flat}, or [{number // 2}] of 0, 1 and {FREE}"
        case _:
            entries = _entries(action)
            return flat if entries is None else f"{flat}, or a tuple of {len(entries)} masks"
