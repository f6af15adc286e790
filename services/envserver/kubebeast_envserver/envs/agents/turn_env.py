"""Several agents that take turns in one environment: a pettingzoo.AECEnv with the interface of gymnasium."""

from collections.abc import Sequence
from typing import Any

from kubebeast_envserver.envs.agents.joint_env import AgentResult, agents_of, common_space
from kubebeast_envserver.faults.env_checks import EnvCheckError
from kubebeast_envserver.rows.rows import WAITING


class TurnEnv:
    """An environment with a result for each possible agent, in their order. All agents have the same spaces.

    In a step, the agent with the turn acts. An agent plays from its first turn until it is terminated or truncated;
    before and after, it is absent. It waits while others have their turns. The reward of an action is the sum of all
    rewards until the next turn of the agent, or its end, as AECEnv.last returns it
    (https://pettingzoo.farama.org/api/aec/).
    """

    def __init__(self, env: Any) -> None:
        """`env` is an AECEnv. Raises ValueError if it names no agents, UnsupportedSpaceError if their spaces differ."""
        self.agents = agents_of(env)
        self._env = env
        self.observation_space = common_space(env, self.agents, "observation")
        self.action_space = common_space(env, self.agents, "action")
        self.metadata = getattr(env, "metadata", {})
        self._playing: set[Any] = set()

    def reset(self, *, seed: int | None = None) -> list[AgentResult]:
        """Returns the first result of the agent with the first turn. Raises EnvCheckError."""
        self._env.reset(seed=seed)
        self._playing = set()
        results = self._results()
        if not self._playing:
            raise EnvCheckError("exception", "no agent has a turn after reset: its `agents` is empty")
        return results

    def step(self, actions: Sequence[Any]) -> list[AgentResult]:
        """Steps with the action of the agent with the turn; others are ignored. Raises EnvCheckError."""
        self._env.step(actions[self.agents.index(self._env.agent_selection)])
        return self._results()

    def render(self) -> Any:
        return self._env.render()

    def close(self) -> None:
        self._env.close()

    def _results(self) -> list[AgentResult]:
        """Returns the results of the agents that have ended, and of the one with the next turn."""
        results: dict[Any, AgentResult] = {}
        while self._env.agents:
            agent = self._selected()
            observation, reward, terminated, truncated, info = self._env.last()
            if not (terminated or truncated):
                results[agent] = self._turn(agent, observation, reward, info)
                break
            if agent in self._playing:
                self._playing.remove(agent)
                results[agent] = observation, reward, terminated, truncated, info
            self._env.step(None)
        return [results.get(agent, WAITING if agent in self._playing else None) for agent in self.agents]

    def _selected(self) -> Any:
        agent = self._env.agent_selection
        if agent not in self.agents:
            raise EnvCheckError("exception", f"agent {agent!r} has the turn but is not in its possible_agents")
        return agent

    def _turn(self, agent: Any, observation: Any, reward: Any, info: Any) -> AgentResult:
        if observation is None:
            raise EnvCheckError("observation", f"there is no observation of agent {agent!r}, which has the turn")
        if agent in self._playing:
            return observation, reward, False, False, info
        self._playing.add(agent)
        return observation, info
