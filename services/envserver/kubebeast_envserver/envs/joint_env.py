"""Several agents in one environment: a pettingzoo.ParallelEnv, made by its id, with the interface of gymnasium."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gymnasium import Space

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.user_code import (
    UserImportError,
    describe,
    import_user_module,
    import_user_object,
    raise_if_interrupt,
)
from kubebeast_envserver.envs.wrapping import wrapped
from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError, check_flag, check_reward
from kubebeast_envserver.rows.rows import EnvironmentFailure, Step
from kubebeast_envserver.rows.spaces import UnsupportedSpaceError

PREFIX = "pettingzoo/"
"""Prefix of ids. "pettingzoo/butterfly/pistonball_v6" is registered with PettingZoo, like all names with a slash;
"pettingzoo/mpe2.simple_spread_v3" stands for parallel_env of that module, "my_envs:pettingzoo/Hunt" for the class
my_envs.Hunt.
"""

_PADDING = {"observation": "pad_observations_v0", "action": "pad_action_space_v0"}

AgentResult = tuple[Any, ...] | None
"""Result of an agent, like that of gymnasium's reset or step; None if it is absent, or ended without an observation."""


def is_joint_id(env_id: str) -> bool:
    """Returns True if "module" or "module:Name" has the PREFIX."""
    return env_id.rpartition(":")[2].startswith(PREFIX)


def module_of_joint_id(name: str) -> str:
    """Returns the module of an id without "module:"; "" if the id is registered with PettingZoo."""
    module = name.removeprefix(PREFIX)
    return "" if "/" in module else module


class JointEnv:
    """An environment with a result for each possible agent, in their order. All agents have the same spaces.

    An agent plays from its first appearance in `agents` until it is terminated, truncated or no longer listed; then it
    is absent until the reset.
    """

    def __init__(self, env: Any) -> None:
        """`env` is a ParallelEnv. Raises ValueError if it names no agents, UnsupportedSpaceError if their spaces
        differ.
        """
        self.agents = tuple(getattr(env, "possible_agents", ()))
        if not self.agents:
            raise ValueError("it has no possible_agents: the number of its agents must be known")
        self._env = env
        self.observation_space = self._common_space("observation")
        self.action_space = self._common_space("action")
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

    def _common_space(self, kind: str) -> Space[Any]:
        first, *others = self.agents
        space_of = getattr(self._env, f"{kind}_space")
        space: Space[Any] = space_of(first)
        for agent in others:
            if space_of(agent) != space:
                raise UnsupportedSpaceError(
                    f"its agents share a policy, but the {kind} space of {agent!r} is {space_of(agent)}, that of "
                    f"{first!r} {space}: make them equal with wrappers such as supersuit:{_PADDING[kind]}"
                )
        return space

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


def make_joint_env(env_id: str, env_kwargs: dict[str, Any], wrappers: Sequence[Wrapper] = ()) -> JointEnv:
    """Makes one environment of an id with the PREFIX in its wrappers, the first one innermost.

    Raises ValueError for an invalid wrapper, or if the id makes no ParallelEnv with agents that can share a policy;
    EnvironmentFailure if the code of the environment or of a wrapper raises.
    """
    try:
        from pettingzoo import ParallelEnv
        from pettingzoo.env_registry.exceptions import PettingZooRegistryError
    except ImportError as error:
        raise ValueError(f"env = {env_id!r}: {error}: pip install 'kubebeast[pettingzoo]'") from error
    try:
        env = _factory(env_id)(**env_kwargs)
    except (PettingZooRegistryError, ImportError) as error:
        raise ValueError(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error
    if not isinstance(env, ParallelEnv):
        raise ValueError(f"env = {env_id!r}: makes {env!r}, which is no pettingzoo.ParallelEnv")
    try:
        return JointEnv(wrapped(env, wrappers, ParallelEnv))
    except (ValueError, EnvironmentFailure) as error:
        raise type(error)(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} has no agents: {describe(error)}") from error


def _factory(env_id: str) -> Callable[..., Any]:
    """Returns the constructor of an id. Raises ImportError or an error of pettingzoo for an unregistered id.

    An evaluation makes the environment that an env-server has named, with its arguments. Therefore an id never stands
    for an arbitrary function of a module.
    """
    import pettingzoo

    module, _, name = env_id.rpartition(":")
    name = name.removeprefix(PREFIX)
    if "/" in name:
        if module:
            import_user_module(module)
        pettingzoo.spec("parallel", name)
        return partial(pettingzoo.make, "parallel", name)
    factory: Callable[..., Any] = import_user_object(f"{module}:{name}" if module else f"{name}:parallel_env")
    if module and not (isinstance(factory, type) and issubclass(factory, pettingzoo.ParallelEnv)):
        raise UserImportError(
            f"{module}.{name} is no class of a pettingzoo.ParallelEnv; a function is called parallel_env, and its id "
            f"is {PREFIX}{module}"
        )
    return factory


class AgentsCheck:
    """Check of the results of a JointEnv, each agent's like that of an environment. Raises EnvCheckError."""

    def __init__(self, agents: Sequence[Any], check: EnvCheck) -> None:
        self._agents = agents
        self._check = check

    def check_reset(self, results: list[AgentResult]) -> list[Step | None]:
        return self.check_step(results)

    def check_step(self, results: list[AgentResult]) -> list[Step | None]:
        return [self._checked(agent, result) for agent, result in zip(self._agents, results, strict=True)]

    def _checked(self, agent: Any, result: AgentResult) -> Step | None:
        try:
            match result:
                case None:
                    return None
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
