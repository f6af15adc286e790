"""Environments with rows known in advance, for tests of code that passes rows on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.rows import StepRows, WithoutOptions

NUM_ENVS, NUM_ACTIONS = 2, 3
OBSERVATION, ACTION = Leaf("", "float32", (3,)), Leaf("", "int64", (), num_categories=NUM_ACTIONS)


class ScriptedEnv(WithoutOptions):
    """Row n holds the number n everywhere; environment i ends an episode at every row n with n % (5 + i) == 0, n > 0.

    Environment 0 terminates, environment 1 is truncated. The reward of a row is its number, 0 on a first row.
    """

    def __init__(self) -> None:
        self.spec_observation, self.spec_action = [OBSERVATION], [ACTION]
        self.num_envs, self.num_agents = NUM_ENVS, 1
        self.takes_turns = False
        self.actions: list[NDArray[Any]] = []
        self._n = 0
        self._final = np.zeros(NUM_ENVS, np.bool_)

    def reset(self) -> StepRows:
        return self._rows(np.ones(NUM_ENVS, np.bool_))

    def step(self, actions: list[NDArray[Any]]) -> StepRows:
        self.actions.append(actions[0].copy())
        self._n += 1
        return self._rows(self._final)

    def close(self) -> None:
        pass

    def _rows(self, is_first: NDArray[np.bool_]) -> StepRows:
        n = self._n
        self._final = np.array([n > 0 and n % (5 + env) == 0 for env in range(NUM_ENVS)])
        by_rules = np.array([True, False])
        rewards = np.where(is_first, 0, n).astype(np.float32)
        observation = np.full((NUM_ENVS, 3), n, np.float32) + np.arange(NUM_ENVS, dtype=np.float32)[:, None] / 10
        episodes = [(int(env), float(n), 5) for env in np.flatnonzero(self._final)]
        return StepRows([observation], rewards, self._final & by_rules, self._final & ~by_rules, is_first, episodes)


class StridedEnv(ScriptedEnv):
    """Observations are every second element of every second row of a larger array, from the last one on."""

    def _rows(self, is_first: NDArray[np.bool_]) -> StepRows:
        rows = super()._rows(is_first)
        larger = np.full((2 * NUM_ENVS, 6), np.nan, np.float32, order="F")
        view = larger[::-2, ::2]
        view[:] = rows.observation[0]
        assert not view.flags.forc
        rows.observation[0] = view
        return rows
