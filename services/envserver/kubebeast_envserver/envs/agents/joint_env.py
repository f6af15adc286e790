"""Several agents that act at once in one environment: a pettingzoo.ParallelEnv with the interface of gymnasium."""

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium import Space

from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError, check_flag, check_reward
from kubebeast_envserver.rows.rows import WAITING, AgentStep
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError

_PADDING = {"observation": "pad_observations_v0", "action": "pad_action_space_v0"}

AgentResult = tuple[Any, ...] | None
"""Result of an agent, like that of gymnasium's reset or step; WAITING, or None if it is absent or ended without an
observation.
"""


class JointEnv:
    """An environment with a result for each possible agent, in their order. All agents have the same spaces.

    An agent plays from its first appearance in `agents` until it is terminated, truncated or no longer listed; then it
    is absent until the reset.
    """

    def __init__(self, env: Any) -> None:
        """`env` is a ParallelEnv. Raises ValueError if it names no agents, UnsupportedSpaceError if their spaces
        differ.
        """
        self.agents = agents_of(env)
        self._env = env
        self.observation_space = common_space(env, self.agents, "observation")
        self.action_space = common_space(env, self.agents, "action")
        self.metadata = getattr(env, "metadata", {})
        self._playing: set[Any] = set()
        self._have_played: set[Any] = set()
        """Agents that have played since the reset, including those that still play."""

    def reset(self, *, seed: int | None = None) -> list[AgentResult]:
        """Returns the first result of each agent. Raises EnvCheckError."""
        result = self._env.reset(seed=seed)
        (observations,) = _mappings("reset", result, ("observation",), 2)
        self._playing, self._have_played = set(), set()
        newcomers = self._newcomers(observations, _infos(result))
        if not newcomers:
            raise EnvCheckError("exception", "no agent plays after reset: its `agents` is empty")
        return [newcomers.get(agent) for agent in self.agents]

    def step(self, actions: Sequence[Any]) -> list[AgentResult]:
        """Steps with one action per agent, which is ignored if the agent does not play. Raises EnvCheckError."""
        joint = {agent: action for agent, action in zip(self.agents, actions, strict=True) if agent in self._playing}
        names = ("observation", "reward", "termination", "truncation")
        result = self._env.step(joint)
        of_agents = [*_mappings("step", result, names, 5), _infos(result)]
        named = set(self._env.agents)
        results: dict[Any, AgentResult] = {
            agent: self._played(agent, agent in named, *(mapping.get(agent) for mapping in of_agents))
            for agent in joint
        }
        results |= self._newcomers(of_agents[0], of_agents[-1])
        return [results.get(agent) for agent in self.agents]

    def render(self) -> Any:
        return self._env.render()

    def close(self) -> None:
        self._env.close()

    def _newcomers(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, AgentResult]:
        """Returns the first results of agents that are listed for the first time; they play from now on."""
        newcomers = [agent for agent in self._env.agents if agent not in self._have_played]
        for agent in newcomers:
            if agent not in self.agents:
                raise EnvCheckError("exception", f"agent {agent!r} plays but is not in its possible_agents")
        self._playing.update(newcomers)
        self._have_played.update(newcomers)
        return {agent: (_required(agent, observations.get(agent)), infos.get(agent)) for agent in newcomers}

    def _played(
        self, agent: Any, is_named: bool, observation: Any, reward: Any, terminated: Any, truncated: Any, info: Any
    ) -> AgentResult:
        """Returns the result of an agent's action. Values that the environment has left out are None."""
        vanished = not (is_named or terminated)
        if terminated or truncated or vanished:
            self._playing.remove(agent)
            if observation is None and not terminated:
                return None  # nothing to bootstrap from: the episode ends with the row before
        else:
            _required(agent, observation)
        return observation, reward, terminated or False, truncated or vanished, info


def agents_of(env: Any) -> tuple[Any, ...]:
    """Returns all agents that an environment may have. Raises ValueError if it does not name them."""
    agents = tuple(getattr(env, "possible_agents", ()))
    if not agents:
        raise ValueError("it has no possible_agents: the number of its agents must be known")
    return agents


def common_space(env: Any, agents: Sequence[Any], kind: str) -> Space[Any]:
    """Returns the "observation" or "action" space of the agents. Raises UnsupportedSpaceError if they differ."""
    first, *others = agents
    space_of = getattr(env, f"{kind}_space")
    space: Space[Any] = space_of(first)
    for agent in others:
        if space_of(agent) != space:
            raise UnsupportedSpaceError(
                f"its agents share a policy, but the {kind} space of {agent!r} is {space_of(agent)}, that of "
                f"{first!r} {space}: make them equal with wrappers such as supersuit:{_PADDING[kind]}"
            )
    return space


class AgentsCheck:
    """Check of the results of a JointEnv or TurnEnv, each agent's like that of an environment. Raises EnvCheckError."""

    def __init__(self, agents: Sequence[Any], check: EnvCheck) -> None:
        self._agents = agents
        self._check = check

    def check_reset(self, results: list[AgentResult]) -> list[AgentStep | None]:
        return self.check_step(results)

    def check_step(self, results: list[AgentResult]) -> list[AgentStep | None]:
        return [self._checked(agent, result) for agent, result in zip(self._agents, results, strict=True)]

    def _checked(self, agent: Any, result: AgentResult) -> AgentStep | None:
        try:
            match result:
                case None:
                    return None
                case ():
                    return WAITING
                case (_, _):
                    return self._check.check_reset(result)
                case (None, reward, terminated, truncated, info):
                    over = check_flag("terminated", terminated), check_flag("truncated", truncated)
                    return None, check_reward(reward), *over, info
                case _:
                    return self._check.check_step(result)
        except EnvCheckError as error:
            raise EnvCheckError(error.kind, f"agent {agent!r}: {error}") from error


def _mappings(call: str, result: Any, names: Sequence[str], size: int) -> list[Mapping[Any, Any]]:
    """Returns the first values in the result of a call, named by `names`. Raises EnvCheckError if one is no mapping of
    agents.
    """
    if not isinstance(result, tuple | list) or len(result) != size:
        raise EnvCheckError("exception", f"{call} returned {type(result).__name__}, not a tuple of {size} dicts")
    for name, value in zip(names, result, strict=False):
        if not isinstance(value, Mapping):
            raise EnvCheckError("exception", f"{call} returned {type(value).__name__}, not a dict, for the {name}s")
    return list(result[: len(names)])


def _infos(result: Any) -> Mapping[Any, Any]:
    """Returns the infos in the result of a call; empty if they are no mapping."""
    return result[-1] if isinstance(result[-1], Mapping) else {}


def _required(agent: Any, observation: Any) -> Any:
    if observation is None:
        raise EnvCheckError("observation", f"there is no observation of agent {agent!r}, which plays")
    return observation
