"""Returns, lengths and infos of whole games, which training may split into several episodes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.text import printable
from kubebeast_envserver.rows.advice import advise
from kubebeast_envserver.rows.rows import StepRows

_MAX_ADVICE_CHARACTERS = 200


class EpisodeCounter:
    """Sums of rewards and decisions for each of B environments."""

    def __init__(self, num_envs: int) -> None:
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)

    def reset(self, envs: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Drops the running games of `envs`, by default of all."""
        self._returns[envs] = 0.0
        self._lengths[envs] = 0

    def add(self, rewards: NDArray[np.floating[Any]], decisions: NDArray[np.bool_]) -> None:
        """Counts one step.

        `rewards` [B] are unclipped and as precise as possible; `decisions` is bool [B], False if the action was
        ignored.
        """
        self._returns += rewards
        self._lengths += decisions

    def finish(self, over: NDArray[np.bool_]) -> list[tuple[int, float, int]]:
        """Ends the games marked in `over`, bool [B]; returns environment, return and length of each."""
        if not over.any():
            return []
        games = [(int(env), float(self._returns[env]), int(self._lengths[env])) for env in np.flatnonzero(over)]
        self.reset(over)
        return games


class InfoNumbers:
    """Numbers in the info of the last step of an episode, by their keys (Welcome.log_info)."""

    def __init__(self, keys: Sequence[str]) -> None:
        """`keys` may name values of nested mappings: "achievements/wood" is info["achievements"]["wood"]."""
        self._keys = keys
        self._reported = dict.fromkeys(keys, False)
        """True for keys that had a number, or whose absence was reported."""

    def read(self, rows: StepRows, env: int) -> tuple[float, ...]:
        """Returns the numbers in the info of a row, in the order of the keys.

        NaN stands for a key without a number, and the result is empty if no key has one. A number is a finite bool, int
        or float, or an array of one. Advises once of each key without one.
        """
        if not self._keys:
            return ()
        info = rows.info_of(env)
        numbers = tuple(_number(_found(info, key)) for key in self._keys)
        for key, number in zip(self._keys, numbers, strict=True):
            if not self._reported[key]:
                self._reported[key] = True
                if math.isnan(number):
                    _advise_of(key, info)
        return numbers if any(not math.isnan(number) for number in numbers) else ()


def info_of_one(infos: Any, env: int) -> dict[str, Any]:
    """Returns the info of one environment of a vector, from arrays [B, ...] by key.

    `_key` is a mask, bool [B], of the environments that have the key
    (https://gymnasium.farama.org/api/vector/#gymnasium.vector.VectorEnv.step).
    """
    found: dict[str, Any] = {}
    for key, values in infos.items() if isinstance(infos, Mapping) else ():
        if isinstance(key, str) and key.startswith("_") and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}")
        if isinstance(mask, np.ndarray) and not mask[env]:
            continue
        if isinstance(values, Mapping):
            found[key] = info_of_one(values, env)
        elif isinstance(values, np.ndarray | list | tuple) and len(values) > env:
            found[key] = values[env]
    return found


def _found(info: Any, key: str) -> Any:
    """Returns info[key], or the value of nested mappings at the parts of the key; None if there is none."""
    if not isinstance(info, Mapping):
        return None
    if key in info:
        return info[key]
    head, slash, rest = key.partition("/")
    return _found(info.get(head), rest) if slash else None


def _number(value: Any) -> float:
    try:
        number = float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return math.nan
    return number if not isinstance(value, str | bytes) and math.isfinite(number) else math.nan


def _advise_of(key: str, info: Any) -> None:
    present = printable(", ".join(_keys_with_numbers(info)), _MAX_ADVICE_CHARACTERS) or "none"
    advise(f"log_info = {key!r}: no number in the info of an episode's last step, which has numbers at: {present}")


def _keys_with_numbers(info: Any, prefix: str = "") -> Iterator[str]:
    for key, value in info.items() if isinstance(info, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _keys_with_numbers(value, f"{prefix}{key}/")
        elif not math.isnan(_number(value)):
            yield f"{prefix}{key}"
