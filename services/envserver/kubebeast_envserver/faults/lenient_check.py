"""Checks that report every violation of an environment and continue."""

from collections.abc import Callable
from typing import Any, TypeVar

from gymnasium import spaces
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError, check_flag, check_reward
from kubebeast_envserver.rows.action_mask import ActionMask
from kubebeast_envserver.rows.rows import Step

T = TypeVar("T")


class LenientCheck(EnvCheck):
    """An EnvCheck that raises nothing: it reports a violation and puts zeros in place of unusable values."""

    def __init__(self, space: spaces.Space[Any], mask: ActionMask | None, tell: Callable[[str], None]) -> None:
        """`space` and `mask` are those of an EnvCheck. `tell` is called with the text of each violation."""
        super().__init__(space, mask)
        (self._nothing,) = iterate(batch_space(space, 1), create_empty_array(space, 1))
        self._tell = tell

    def check_reset(self, result: Any) -> Step:
        if isinstance(result, tuple | list) and len(result) == 2:
            self.look_at(result[1])
            return self._observation(result[0], acts=True, where="reset: "), 0.0, False, False, result[1]
        self._told(lambda: super(LenientCheck, self).check_reset(result), None, "reset: ")
        try:
            return self.check_observation(result), 0.0, False, False, None
        except EnvCheckError:  # the result is no observation either
            return self._nothing, 0.0, False, False, None

    def check_step(self, result: Any) -> Step:
        if not isinstance(result, tuple | list) or len(result) != 5:
            self._told(lambda: super(LenientCheck, self).check_step(result), None)
            if not isinstance(result, tuple | list) or len(result) != 4:
                return self._nothing, 0.0, False, False, None
            observation, reward, done, info = result
            result = observation, reward, done, False, info
        observation, reward, terminated, truncated, info = result
        self.look_at(info)
        terminated = self._told(lambda: check_flag("terminated", terminated), False)
        truncated = self._told(lambda: check_flag("truncated", truncated), False)
        reward = self._told(lambda: check_reward(reward), 0.0)
        usable = self._observation(observation, acts=not (terminated or truncated))
        return usable, reward, terminated, truncated, info

    def _observation(self, observation: Any, *, acts: bool, where: str = "") -> Any:
        """`acts`: an action follows. `where`: place of a violation, for its text."""
        usable = self._told(lambda: self.check_observation(observation), self._nothing, where)
        if acts and usable is not self._nothing:
            self._told(lambda: self.check_mask(usable), None, where)
        return usable

    def _told(self, check: Callable[[], T], instead: T, where: str = "") -> T:
        try:
            return check()
        except EnvCheckError as error:
            self._tell(f"{where}{error}")
            return instead
