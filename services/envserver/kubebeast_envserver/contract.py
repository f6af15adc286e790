"""What an environment may return. Nothing else of it reaches the learner."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from kubebeast_envserver.stream_status import FailureKind

_MAX_REWARD = float(np.finfo(np.float32).max)
"""Rewards travel as float32."""

Step = tuple[Any, float, bool, bool]
"""Observation, reward, terminated and truncated."""


class ContractError(Exception):
    """An environment returned what it must not."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class Contract:
    """Of the environments of a vector. Its methods raise ContractError."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        """space: of one environment's observations."""
        self._space = space
        is_array = isinstance(space, spaces.Box)
        self._dtype = space.dtype if is_array else None
        self._shape = space.shape if is_array else None

    def check_observation(self, observation: Any) -> Any:
        """The observation, which must have the structure, shape and, of categories, the range of its space.

        Its dtype must be one that NumPy casts to that of the space by the rule "same_kind"
        (https://numpy.org/doc/stable/reference/generated/numpy.can_cast.html).
        """
        is_usual = type(observation) is np.ndarray and observation.dtype == self._dtype
        if not is_usual or observation.shape != self._shape:
            _check_observation(self._space, observation)
        return observation

    def check_step(self, observation: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Step:
        """What `step` returned; the reward as a finite float32, both flags as bools."""
        self.check_observation(observation)
        if type(reward) is not float or not -_MAX_REWARD <= reward <= _MAX_REWARD:
            reward = _check_reward(reward)
        if type(terminated) is not bool or type(truncated) is not bool:
            _check_flags(terminated, truncated)
        return observation, reward, terminated, truncated


def _check_observation(space: spaces.Space[Any], observation: Any, path: str = "") -> None:
    match space:
        case spaces.Dict():
            if not isinstance(observation, Mapping) or not space.keys() <= observation.keys():
                raise _unfit(path, f"is {_short(observation)}, not a mapping with the keys {', '.join(space.keys())}")
            for key, entry in space.items():
                _check_observation(entry, observation[key], f"{path}.{key}")
        case spaces.Tuple():
            if not isinstance(observation, tuple | list) or len(observation) != len(space):
                raise _unfit(path, f"is {_short(observation)}, not a tuple of {len(space)}")
            for index, entry in enumerate(space):
                _check_observation(entry, observation[index], f"{path}.{index}")
        case _:
            _check_array(space, observation, path)


def _check_array(space: spaces.Space[Any], value: Any, path: str) -> None:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise _unfit(path, f"is no array: {error}") from error
    if array.shape != space.shape:
        raise _unfit(path, f"has the shape {list(array.shape)}, its space has {list(space.shape or ())}")
    if array.dtype != space.dtype and not np.can_cast(array.dtype, np.dtype(space.dtype), "same_kind"):
        raise _unfit(path, f"has the dtype {array.dtype}, its space has {space.dtype}")
    # Categories index a table in the model; numbers of a Box may leave their bounds, as they do in many environments.
    if not isinstance(space, spaces.Box) and value not in space and array.astype(space.dtype) not in space:
        raise _unfit(path, f"is {_short(value)}, which is not in {space}")


def _check_reward(reward: Any) -> float:
    try:
        number = float(reward)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(reward, str | bytes) or not abs(number) <= _MAX_REWARD:
        raise ContractError("reward", f"step returned the reward {_short(reward)}: it must be a finite float32")
    return number


def _check_flags(terminated: Any, truncated: Any) -> None:
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):
            raise ContractError("exception", f"step returned {name} = {_short(flag)}: it must be a bool")


def _unfit(path: str, what: str) -> ContractError:
    return ContractError("observation", f"the observation{' at ' if path else ''}{path.lstrip('.')} {what}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
