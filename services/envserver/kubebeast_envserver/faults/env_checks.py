"""Checks of the results of environments. Nothing else of them reaches the learner."""

import operator
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from kubebeast_common.user_code import message
from kubebeast_envserver.rows.action_mask import PATH, ActionMask
from kubebeast_envserver.rows.advice import advise
from kubebeast_envserver.rows.rows import Step
from kubebeast_envserver.rows.spaces import Array
from kubebeast_envserver.rows.stream_status import FailureKind

_MAX_FLOAT32 = float(np.finfo(np.float32).max)
"""Bound of rewards, which travel as float32, and of observations, as models compute in float32."""
_OLD_GYM = "the environment has gym's interface before 0.26: {}, or wrap it (https://shimmy.farama.org)"
_RESET_RESULT = "(observation, info)"
_STEP_RESULT = "(observation, reward, terminated, truncated, info)"


class EnvCheckError(Exception):
    """Error of an environment that returned an invalid value."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class EnvCheck:
    """Checks for the environments of a vector. Invalid values raise EnvCheckError."""

    def __init__(self, space: spaces.Space[Any], mask: ActionMask | None = None) -> None:
        """`space` is that of the observations, `mask` the action mask among its leaves."""
        self._space = space
        self._mask = mask
        is_array = isinstance(space, spaces.Box)
        self._dtype = space.dtype if is_array else None
        self._shape = space.shape if is_array else None
        self._is_float = self._dtype is not None and self._dtype.kind == "f"
        self._looks_at_infos = mask is None

    def check_reset(self, result: Any) -> Step:
        """Returns the result of `reset` as a row."""
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise EnvCheckError("exception", _unlike_reset(result))
        observation, info = result
        observation = self.check_observation(observation)
        self.check_mask(observation)
        self.look_at(info)
        return observation, 0.0, False, False, info

    def check_step(self, result: Any) -> Step:
        """Returns the result of `step` as a row, with a reward that is finite as float32, and both flags as bools."""
        if not isinstance(result, tuple | list) or len(result) != 5:
            raise EnvCheckError("exception", _unlike_step(result))
        observation, reward, terminated, truncated, info = result
        observation = self.check_observation(observation)
        if type(reward) is not float or not -_MAX_FLOAT32 <= reward <= _MAX_FLOAT32:
            reward = check_reward(reward)
        if type(terminated) is not bool or type(truncated) is not bool:
            terminated, truncated = check_flag("terminated", terminated), check_flag("truncated", truncated)
        if not (terminated or truncated):
            self.check_mask(observation)
        self.look_at(info)
        return observation, reward, terminated, truncated, info

    @np.errstate(all="ignore")  # an environment may have set errors to raise
    def check_observation(self, observation: Any) -> Any:
        """Returns the observation, with plain arrays in place of subclasses.

        It must have the structure and the shapes of its space and, for categories, their range. Its dtype must be one
        that NumPy casts to that of the space by the rule "same_kind"
        (https://numpy.org/doc/stable/reference/generated/numpy.can_cast.html), and its numbers must fit the dtype of
        the space. Those of a float leaf must be finite, also as float32.
        """
        is_usual = type(observation) is np.ndarray and observation.dtype == self._dtype
        if not is_usual or observation.shape != self._shape:
            return _checked(self._space, observation)
        if self._is_float:
            _check_finite(observation)
        return observation

    def check_mask(self, observation: Any) -> None:
        """Raises EnvCheckError if the mask allows no action. For observations after which an action follows."""
        if self._mask is not None and (violation := self._mask.violation(observation)) is not None:
            raise EnvCheckError("observation", violation)

    def look_at(self, info: Any) -> None:
        """Advises, once, of a mask in `info` alone, which has no effect."""
        if self._looks_at_infos and isinstance(info, Mapping) and PATH in info:
            self._looks_at_infos = False
            advise(
                f"info has {PATH!r}, which has no effect: forbidden actions are chosen, too. Make it part of the "
                "observation: for single environments, --wrappers kubebeast_envserver:ActionMaskFromInfo does this"
            )


def old_gym_hint(error: BaseException) -> str:
    """Returns advice if a wrapper of gymnasium failed on an environment of the old interface; else an empty string."""
    text = message(error)
    if isinstance(error, TypeError) and re.search(
        r"reset\(\) got an unexpected keyword argument '(seed|options)'", text
    ):
        return f": {_OLD_GYM.format('let reset take seed and options')}"
    if isinstance(error, ValueError) and text == "not enough values to unpack (expected 5, got 4)":
        return f": {_OLD_GYM.format(f'let step return {_STEP_RESULT}')}"
    return ""


def _checked(space: spaces.Space[Any], observation: Any, path: str = "") -> Any:
    match space:
        case spaces.Dict():
            if not isinstance(observation, Mapping) or not space.keys() <= observation.keys():
                raise _unfit(path, f"is {_short(observation)}, not a mapping with the keys {', '.join(space.keys())}")
            if PATH in observation and PATH not in space.spaces:
                raise _unfit(path, f"has {PATH!r}, its space has not: a mask outside the space has no effect")
            parts = {key: _checked(entry, observation[key], f"{path}.{key}") for key, entry in space.items()}
            return observation if all(part is observation[key] for key, part in parts.items()) else parts
        case spaces.Tuple():
            if not isinstance(observation, tuple | list) or len(observation) != len(space):
                raise _unfit(path, f"is {_short(observation)}, not a tuple of {len(space)}")
            entries = tuple(_checked(entry, observation[i], f"{path}.{i}") for i, entry in enumerate(space))
            return observation if all(map(operator.is_, entries, observation)) else entries
        case _:
            return _checked_array(space, observation, path)


def _checked_array(space: spaces.Space[Any], value: Any, path: str) -> Any:
    """Returns the value, as a plain array if it is a numpy.matrix or the like, which does not stack as arrays do."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise _unfit(path, "is a masked array with masked elements: fill them (numpy.ma.filled)")
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
    return array if isinstance(value, np.ndarray) and type(value) is not np.ndarray else value


def _check_finite(array: Array, path: str = "") -> None:
    magnitudes = np.abs(array)
    # The maximum of an array with NaN is NaN, which compares false.
    if array.size and not float(magnitudes.max()) <= _MAX_FLOAT32:
        number = array[~(magnitudes <= _MAX_FLOAT32)][0]
        raise _unfit(path, f"holds {number}, which is no finite float32")


def check_reward(reward: Any) -> float:
    """Returns the reward as a float that is finite as float32. Raises EnvCheckError."""
    number = _only(reward)
    if not isinstance(number, int | float):
        is_vector = isinstance(reward, list | tuple | np.ndarray)
        several = ", as a wrapper makes of several objectives by weighing them" * is_vector
        text = f"step returned the reward {_short(reward)}: it must be a finite float32, one number{several}"
        raise EnvCheckError("reward", text)
    if not abs(number) <= _MAX_FLOAT32:
        raise EnvCheckError("reward", f"step returned the reward {_short(reward)}: it must be a finite float32")
    return float(number)


def check_flag(name: str, flag: Any) -> bool:
    """Returns the flag as a bool. Raises EnvCheckError with `name` in its message."""
    answer = _only(flag)
    if not isinstance(answer, int) or answer not in (0, 1):
        raise EnvCheckError("exception", f"step returned {name} = {_short(flag)}: it must be a bool")
    return bool(answer)


def _only(value: Any) -> Any:
    """Returns the element of an array or tensor that has only one; other values unchanged."""
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
