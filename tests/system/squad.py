"""Scripted environments as the agents of one: each ends its own episodes, and one that fails takes all with it."""

from typing import Any

from gymnasium import spaces
from pettingzoo import ParallelEnv

from harness.chaos.serial_env import Row
from tests.system.environments import Scripted

SQUAD = f"{__name__}:pettingzoo/Squad"
NUM_MEMBERS = 3

Played = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class Squad(ParallelEnv[str, Row, Any]):
    """An environment with a first member that acts first: if it fails, no other has taken a decision in that step."""

    def __init__(self, **script: Any) -> None:
        """script: arguments of every member."""
        self._members = {f"member_{i}": Scripted(**script) for i in range(NUM_MEMBERS)}
        self.possible_agents = list(self._members)
        self.agents: list[str] = []
        self.metadata = {}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._members[agent].observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._members[agent].action_space

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Row], dict[str, Any]]:
        seeds = {agent: None if seed is None else seed + i for i, agent in enumerate(self.possible_agents)}
        self.agents = list(self.possible_agents)
        return {agent: member.reset(seed=seeds[agent])[0] for agent, member in self._members.items()}, {}

    def step(self, actions: dict[str, Any]) -> Played:
        results = {agent: self._members[agent].step(actions[agent]) for agent in sorted(actions)}
        seen, rewards, terminated, truncated, infos = (
            {agent: result[part] for agent, result in results.items()} for part in range(5)
        )
        self.agents = [agent for agent in self.agents if not (terminated[agent] or truncated[agent])]
        return seen, rewards, terminated, truncated, infos
