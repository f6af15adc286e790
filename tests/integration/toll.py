"""Agents that take turns in a game that follows a script, in which each move pays the other agents."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

TOLL = f"{__name__}:pettingzoo/Toll"
FOLD = f"{__name__}:pettingzoo/Fold"
NUM_ACTIONS = 4


class Toll(AECEnv[str, Any, Any]):
    """Agents move in their order. Move m, counted from 1, pays m to each other agent, and the last one ends the game.

    Agent i sees (i, the number of moves so far).
    """

    def __init__(
        self,
        num_agents: int = 2,
        num_moves: int = 5,
        ends: Mapping[str, Sequence[int]] | None = None,
        fails_at: int = 0,
    ) -> None:
        """ends: numbers of agents that are terminated after a move, by its number as a text. fails_at: a move that
        raises an error.
        """
        super().__init__()  # type: ignore[no-untyped-call] # of PettingZoo
        self.metadata = {"render_modes": []}
        self.possible_agents = [f"agent_{i}" for i in range(num_agents)]
        self.agents: list[str] = []
        self.taken: list[tuple[str, int]] = []
        self._num_moves, self._ends, self._fails_at = num_moves, dict(ends or {}), fails_at
        self._number = 0

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(NUM_ACTIONS)

    def observe(self, agent: str) -> Any:
        return np.array([self.possible_agents.index(agent), self._number], np.float32)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self._number = 0
        self.agent_selection = self.agents[0]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        assert agent is not None
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._number += 1
        self.taken.append((agent, int(action)))
        if self._number == self._fails_at:
            raise RuntimeError("the game is broken")
        self._cumulative_rewards[agent] = 0.0
        living = [each for each in self.agents if not self.terminations[each]]
        self.rewards = {each: float(self._number) if each in living and each != agent else 0.0 for each in self.agents}
        self._accumulate_rewards()
        is_over = self._number >= self._num_moves
        for index in range(len(self.possible_agents)) if is_over else self._ends.get(str(self._number), ()):
            self.terminations[self.possible_agents[index]] = True
        places = self.possible_agents.index(agent) + 1 + np.arange(len(self.possible_agents))
        order = [self.possible_agents[place % len(self.possible_agents)] for place in places]
        remaining = [each for each in order if each in self.agents and not self.terminations[each]]
        self.agent_selection = remaining[0] if remaining else self.agents[0]
        self._deads_step_first()

    def render(self) -> None:
        return None


class Fold(Toll):
    """Two agents; every second game ends with the first move, so that only one of them has a turn."""

    def __init__(self) -> None:
        super().__init__(num_moves=6)
        self._num_games = 0

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self._num_games += 1
        self._num_moves = 6 if self._num_games % 2 else 1
        super().reset(seed, options)
