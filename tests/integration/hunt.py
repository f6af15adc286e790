"""Several agents in one environment that follows a script."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

HUNT = f"{__name__}:pettingzoo/Hunt"
NUM_AGENTS, NUM_ACTIONS = 3, 4
PLAYS, ENDS, FAULTS = "p", "txTX", "on!"
ABSENT = "."

Played = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class Hunt(ParallelEnv[str, Any, int]):
    """A game is a list of words, one for its reset and one for each step, with a letter for each agent:

    p plays; t is terminated, x truncated, T and X without an observation; . is not named; o plays without an
    observation, n plays for a reward of NaN; ! raises. After the last word all are terminated; after the last game all
    play one step. Agent i sees (i, the number of the word), and gets the second as its reward.
    """

    def __init__(
        self,
        games: Iterable[list[str]] = (),
        num_agents: int = NUM_AGENTS,
        masked: bool = False,
        odd_spaces: Mapping[str, spaces.Space[Any]] | None = None,
        stranger: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """games: an iterator is shared by all that are given it. masked: the action mask allows the number of the word.

        odd_spaces: action spaces of agents with other actions. stranger: an agent outside possible_agents plays.
        """
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 5}
        self.possible_agents = [f"hunter_{i}" for i in range(num_agents)]
        self.agents: list[str] = []
        self.taken: list[dict[str, int]] = []
        self._games: Iterator[list[str]] = iter(games)
        self._words: Iterator[str] = iter(())
        self._masked = masked
        self._strangers = ["stranger"] * stranger
        self._view = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self._masked_view = spaces.Dict({"observation": self._view, "action_mask": spaces.MultiBinary(NUM_ACTIONS)})
        self._action_spaces = dict.fromkeys(self.possible_agents, spaces.Discrete(NUM_ACTIONS)) | dict(odd_spaces or {})

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._masked_view if self._masked else self._view

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        num_agents = len(self.possible_agents)
        self._words = iter(next(self._games, [PLAYS * num_agents]))
        self._number = -1
        observations = self._play(next(self._words))[0]
        return observations, {}

    def step(self, actions: dict[str, int]) -> Played:
        self.taken.append(dict(actions))
        return self._play(next(self._words, "t" * len(self.possible_agents)))

    def render(self) -> Any:
        return np.full((4, 6, 3), self._number, np.uint8)

    def _play(self, word: str) -> Played:
        self._number += 1
        if "!" in word:
            raise RuntimeError("the forest is on fire")
        letters = dict(zip(self.possible_agents, word, strict=True))
        named = [agent for agent, letter in letters.items() if letter in "pon"]
        self.agents = (named[::-1] if self._number % 2 else named) + self._strangers
        there = [agent for agent, letter in letters.items() if letter != ABSENT]
        seen = {agent: self._observation(agent) for agent in there if letters[agent] not in "oTX"}
        rewards = {agent: np.nan if letters[agent] == "n" else float(self._number) for agent in there}
        terminated, truncated = ({agent: letters[agent].lower() == end for agent in there} for end in "tx")
        return seen, rewards, terminated, truncated, {}

    def _observation(self, agent: str) -> Any:
        view = np.array([self.possible_agents.index(agent), self._number], np.float32)
        if not self._masked:
            return view
        return {"observation": view, "action_mask": np.arange(NUM_ACTIONS) == self._number % NUM_ACTIONS}
