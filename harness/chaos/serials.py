"""Serial numbers in observations, with which a consumer of rollouts checks that transitions are complete and unique.

A row is float32 [4]: the instance of the environment as two words, the row's number t in the life of that instance, and
a check word. Words are integers below 2**24, which float32 represents exactly. The action at row t leads to row t + 1;
a reset skips a number, so that a transition across it is detected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROW_SIZE = 4
WORD = 1 << 24
MAX_INSTANCE = WORD**2

_TORN, _UNREADABLE = -1, -2


def encode(instance: int, t: int) -> NDArray[np.float32]:
    """Returns the row as float32 [4]. `instance` must be below MAX_INSTANCE, `t` below WORD."""
    high, low = divmod(instance, WORD)
    return np.array([high, low, t, _check_word(high, low, t)], np.float32)


def decode(rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Returns instance int64 [...], t int64 [...] and readability bool [...] of rows float32 [..., 4]."""
    words = np.where((rows >= 0) & (rows < WORD) & (rows == np.floor(rows)), rows, -1.0).astype(np.int64)
    high, low, t, check = np.moveaxis(words, -1, 0)
    readable = (words >= 0).all(axis=-1) & (check == _check_word(high, low, t))
    return high * WORD + low, t, readable


def newest(stacks: NDArray[Any]) -> NDArray[Any]:
    """Returns the newest frames, float32 [..., 4], of stacks float32 [..., k, 4] padded with an episode's first row.

    An unreadable row takes the place of a stack with frames that do not follow each other.
    """
    instance, t, readable = decode(stacks)
    follows = (np.diff(t) == 1) | (t[..., 1:] == t[..., :1])
    whole = readable.all(axis=-1) & (instance == instance[..., -1:]).all(axis=-1) & follows.all(axis=-1)
    return np.where(whole[..., np.newaxis], stacks[..., -1, :], -1.0)


def _check_word(high: Any, low: Any, t: Any) -> Any:
    """Returns the check word; its factors are odd, so that a change of a single word changes it."""
    return (3 * high + 5 * low + 7 * t) % WORD


def runs(observation: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the delivered transitions of a batch as int64 [K, 3]: instance, first t, last t of K unbroken runs.

    Args:
        observation: float32 [T+1, B, 4].
        valid: bool [T, B]. Faulty transitions among the valid ones are returned as runs of the instances -1 (row t + 1
            does not follow row t) and -2 (a row was changed on its way).
    """
    instance, t, readable = (field.T for field in decode(observation))
    known = valid.T & readable[:, :-1] & readable[:, 1:]
    whole = known & (instance[:, 1:] == instance[:, :-1]) & (t[:, 1:] == t[:, :-1] + 1)
    edge = np.zeros((len(whole), 1), np.bool_)
    lane, first = np.nonzero(whole & ~np.hstack([edge, whole[:, :-1]]))
    _, last = np.nonzero(whole & ~np.hstack([whole[:, 1:], edge]))
    found = np.stack([instance[lane, first], t[lane, first], t[lane, last]], axis=1)
    oddities = [(_TORN, int((known & ~whole).sum())), (_UNREADABLE, int((valid.T & ~known).sum()))]
    marks = np.array([(kind, 0, count - 1) for kind, count in oddities if count], np.int64).reshape(-1, 3)
    return np.concatenate([found, marks])


@dataclass(frozen=True, slots=True)
class Tally:
    """The transitions that a consumer has received, by kind."""

    delivered: int
    """Distinct transitions."""
    duplicated: int
    """Repeated transitions."""
    torn: int
    """Pairs of rows that do not follow each other."""
    unreadable: int
    """Transitions with a row that was changed on its way."""


def tally(batches: Sequence[NDArray[np.int64]]) -> Tally:
    """Counts the transitions in the `runs` of any number of batches, in any order."""
    table = np.concatenate([np.empty((0, 3), np.int64), *batches])
    instance, first, last = table[np.lexsort((table[:, 1], table[:, 0]))].T
    torn, unreadable = (int((last - first + 1)[instance == kind].sum()) for kind in (_TORN, _UNREADABLE))
    real = instance >= 0
    _, rank = np.unique(instance[real], return_inverse=True)
    # One axis for all instances: runs overlap on it only if they share transitions.
    first, last = rank * WORD + first[real], rank * WORD + last[real]
    reach = np.maximum.accumulate(np.concatenate([[-1], last]))
    delivered = int(np.maximum(0, last - np.maximum(first, reach[:-1] + 1) + 1).sum())
    return Tally(delivered, int((last - first + 1).sum()) - delivered, torn, unreadable)
