"""What an environment may return. Nothing else of it reaches the learner."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from kubebeast_common.user_code import message
from kubebeast_envserver.rows.action_mask import PATH, ActionMask
from kubebeast_envserver.rows.rows import Step
from kubebeast_envserver.rows.spaces import Array
from kubebeast_envserver.rows.stream_status import FailureKind

_MAX_FLOAT32 = float(np.finfo(np.float32).max)
"""Rewards travel as float32, and models compute in it."""
_OLD_GYM = "the environment has gym's interface before 0.26: {}, or wrap it (https://shimmy.farama.org)"
_RESET_RESULT = "(observation, info)"
_STEP_RESULT = "(observation, reward, terminated, truncated, info)"


class EnvCheckError(Exception):
    """An environment returned what it must not."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class EnvCheck:
    """Of the environments of a vector. Its methods raise EnvCheckError."""

    def __init__(self, space: spaces.Space[Any], mask: ActionMask | None = None) -> None:
        """space: of one environment's observations. mask: the action mask among its leaves."""
        self._space = space
        self._mask = mask
        is_array = isinstance(space, spaces.Box)
        self._dtype = space.dtype if is_array else None
        self._shape = space.shape if is_array else None
        self._is_float = self._dtype is not None and self._dtype.kind == "f"

    def check_reset(self, result: Any) -> Step:
        """What `reset` returned, as a row."""
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise EnvCheckError("exception", _unlike_reset(result))
        observation = self.check_observation(result[0])
        self.check_mask(observation)
        return observation, 0.0, False, False

    def check_step(self, result: Any) -> Step:
        """What `step` returned; the reward as a finite float32, both flags as bools."""
        if not isinstance(result, tuple | list) or len(result) != 5:
            raise EnvCheckError("exception", _unlike_step(result))
        observation, reward, terminated, truncated, _ = result
        self.check_observation(observation)
        if type(reward) is not float or not -_MAX_FLOAT32 <= reward <= _MAX_FLOAT32:
            reward = check_reward(reward)
        if type(terminated) is not bool or type(truncated) is not bool:
            terminated, truncated = check_flag("terminated", terminated), check_flag("truncated", truncated)
        if not (terminated or truncated):
            self.check_mask(observation)
        return observation, reward, terminated, truncated

    def check_observation(self, observation: Any) -> Any:
        """The observation, which must have the structure, shape and, of categories, the range of its space.

        Its dtype must be one that NumPy casts to that of the space by the rule "same_kind"
        (https://numpy.org/doc/stable/reference/generated/numpy.can_cast.html), its numbers such as that dtype can hold;
        those of a float leaf finite, also as float32.
        """
        is_usual = type(observation) is np.ndarray and observation.dtype == self._dtype
        if not is_usual or observation.shape != self._shape:
            _check_observation(self._space, observation)
        elif self._is_float:
            _check_finite(observation)
        return observation

    def check_mask(self, observation: Any) -> None:
        """Where an action follows, there must be one. Raises EnvCheckError."""
        if self._mask is None:
            return
        choice = self._mask.forbidden_choice(np.asarray(observation[PATH]))
        if choice is not None:
            raise EnvCheckError("observation", f"the action mask allows no category of choice {choice}")


def old_gym_hint(error: BaseException) -> str:
    """What to do, where a wrapper of gymnasium stumbled over an environment of the old interface; else empty."""
    text = message(error)
    if isinstance(error, TypeError) and re.search(
        r"reset\(\) got an unexpected keyword argument '(seed|options)'", text
    ):
        return f": {_OLD_GYM.format('let reset take seed and options')}"
    if isinstance(error, ValueError) and text == "not enough values to unpack (expected 5, got 4)":
        return f": {_OLD_GYM.format(f'let step return {_STEP_RESULT}')}"
    return ""


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
    if not isinstance(space, spaces.Box):
        if value not in space and array.astype(space.dtype) not in space:
            raise _unfit(path, f"is {_short(value)}, which is not in {space}")
    elif space.dtype.kind == "f":
        _check_finite(array, path)
    elif array.dtype != space.dtype and (lost := array != array.astype(space.dtype)).any():
        raise _unfit(path, f"holds {array[lost][0]}, which its dtype {space.dtype} cannot hold")


def _check_finite(array: Array, path: str = "") -> None:
    magnitudes = np.abs(array)
    # NaN is the maximum of what it is in, and compares false.
    if array.size and not float(magnitudes.max()) <= _MAX_FLOAT32:
        number = array[~(magnitudes <= _MAX_FLOAT32)][0]
        raise _unfit(path, f"holds {number}, which is no finite float32")


def check_reward(reward: Any) -> float:
    """As a finite float32. Raises EnvCheckError."""
    number = _only(reward)
    if not isinstance(number, int | float) or not abs(number) <= _MAX_FLOAT32:
        raise EnvCheckError("reward", f"step returned the reward {_short(reward)}: it must be a finite float32")
    return float(number)


def check_flag(name: str, flag: Any) -> bool:
    """As a bool. Raises EnvCheckError, which calls it `name`."""
    answer = _only(flag)
    if not isinstance(answer, int) or answer not in (0, 1):
        raise EnvCheckError("exception", f"step returned {name} = {_short(flag)}: it must be a bool")
    return bool(answer)


def _only(value: Any) -> Any:
    """The element of an array or tensor that has only one; anything else as it is."""
    try:
        return value.item()
    except (AttributeError, ValueError, RuntimeError):
        return value


def _unlike_reset(result: Any) -> str:
    text = f"reset returned {_short(result)}, not {_RESET_RESULT}"
    return text if result is None else f"{text}: {_OLD_GYM.format(f'return {_RESET_RESULT}')}"


def _unlike_step(result: Any) -> str:
    if isinstance(result, tuple | list) and len(result) == 4:
        hint = _OLD_GYM.format(f"return {_STEP_RESULT}")
        return f"step returned 4 values (observation, reward, done, info): {hint}"
    return f"step returned {_short(result)}, not {_STEP_RESULT}"


def _unfit(path: str, what: str) -> EnvCheckError:
    return EnvCheckError("observation", f"the observation{' at ' if path else ''}{path.lstrip('.')} {what}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
