"""Vectors of environments by their ids: the public entry point for stepping environments."""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kubebeast_common.backoff import Backoff, FaultPolicy
from kubebeast_common.spec.env_config import EnvConfig, Wrapper
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.config import MAX_SEED, Preset
from kubebeast_envserver.envs.agents.joint_ids import is_joint_id, make_joint_env, module_of_joint_id
from kubebeast_envserver.envs.agents.multi_agent_env import MultiAgentEnv
from kubebeast_envserver.envs.atari_choice import AtariGame, find_atari
from kubebeast_envserver.envs.gymnasium_env import GymnasiumEnv, MakeCheck
from kubebeast_envserver.envs.libraries.envpool_env import make_envpool
from kubebeast_envserver.envs.mock import MockEnv
from kubebeast_envserver.envs.vector_env import ENVPOOL_PREFIX, VectorEnvRows, is_vector_id, make_vec
from kubebeast_envserver.envs.wrapping import make_env
from kubebeast_envserver.faults.env_checks import EnvCheck
from kubebeast_envserver.rows.frame_stack import FullStacks
from kubebeast_envserver.rows.limits import check_limits
from kubebeast_envserver.rows.observation_frames import ObservationFrames
from kubebeast_envserver.rows.rows import EnvironmentFailure, HostedEnv, RenderedEnv, StepRows
from kubebeast_envserver.rows.running_statistics import Statistics, restore
from kubebeast_envserver.rows.stream_status import StreamStatus

__all__ = [
    "AtariGame",
    "EnvConfig",
    "EnvironmentFailure",
    "FaultPolicy",
    "HostedEnv",
    "Leaf",
    "Preset",
    "RenderedEnv",
    "StepRows",
    "Wrapper",
    "find_action_meanings",
    "find_atari",
    "make_rendered_env",
    "make_vector_env",
    "module_of",
    "num_agents_of",
    "resolve_config",
]

MadeT = TypeVar("MadeT")

MAX_TRIES = 3
"""Tries of a constructor before it counts as broken: some fail occasionally."""


def make_vector_env(
    env: str,
    num_envs: int,
    preset: Preset = "auto",
    env_kwargs: dict[str, Any] | None = None,
    seed: int | None = None,
    evaluation: bool = False,
    *,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
    full_stacks: bool = True,
    policy: FaultPolicy | None = None,
    status: StreamStatus | None = None,
    make_check: MakeCheck = EnvCheck,
    statistics: Sequence[Statistics] | None = None,
) -> HostedEnv:
    """Makes `num_envs` environments that step together (B), with NEXT_STEP autoreset.

    Args:
        env: A gymnasium id; module:Id, which imports the module first; vector/Id for gymnasium.make_vec; pettingzoo/...
            for several agents (joint_ids.PREFIX); envpool/Id for EnvPool; module:dm_env/Class; gym/Id for older gym; an
            Atari id; or Mock.
        num_envs: Number of environments. Every agent counts if one environment has several: a multiple of
            `num_agents_of`.
        preset: Atari preprocessing. auto depends on the id: PongNoFrameskip-v4 is atari-v4, ALE/Pong-v5 is atari-v5.
        env_kwargs: Arguments of the environment, or overrides of the preset (AtariSettings).
        seed: Environment i starts from seed + i. None takes seeds from the operating system.
        evaluation: If True, a lost life does not end an episode, so that episodes are whole games.
        wrappers: Wrappers of each environment, the first one innermost, for gymnasium and PettingZoo only.
        time_limit: Steps after which an episode is truncated, inside the wrappers, instead of the registered number. 0
            keeps the registered one.
        full_stacks: If True, rows hold whole frame stacks; if False, only the newest frame, as on the wire.
        policy: Number and time of failures after which one of several environments is given up.
        status: Counters of failures.
        make_check: Makes the check of all results of gymnasium environments from the observation space and its mask.
        statistics: Statistics of a training's wrappers. Training continues from them, evaluation does not change them.
            None if they are neither known nor saved.

    Returns:
        The environments, not reset yet.

    Raises:
        ValueError: An id, preset, argument, wrapper or space cannot be used.
        EnvironmentFailure: The constructor of the environment or of a wrapper raised in each of MAX_TRIES tries, which
            are less than a second apart.
    """
    if num_envs < 1:
        raise ValueError(f"num_envs = {num_envs}: must be at least 1")
    if seed is not None and not 0 <= seed <= MAX_SEED + 1 - num_envs:
        raise ValueError(f"seed = {seed}: must be 0 to {MAX_SEED} for each of {num_envs} environments")
    kwargs = env_kwargs or {}
    atari = find_atari(env, preset, kwargs, wrappers, time_limit, evaluation=evaluation)

    def make() -> HostedEnv:
        if env == "Mock":
            return _mock(num_envs, kwargs)
        if atari is None:
            arguments = _arguments(kwargs, time_limit)
            if is_vector_id(env):
                return _vector(env, num_envs, arguments, seed, evaluation)
            kind = MultiAgentEnv if is_joint_id(env) else GymnasiumEnv
            return kind(
                env,
                num_envs,
                arguments,
                seed,
                wrappers=wrappers,
                policy=policy,
                status=status,
                make_check=make_check,
            )
        return atari.make(num_envs, seed)

    hosted = _make_patiently(make)
    check_limits(hosted.spec_observation, hosted.spec_action, num_envs)
    restore(hosted, statistics, evaluation=evaluation)
    stacked = any(leaf.frame_stack > 1 for leaf in hosted.spec_observation)
    return FullStacks(hosted) if full_stacks and stacked else hosted


def make_rendered_env(
    env: str,
    num_envs: int,
    preset: Preset = "auto",
    env_kwargs: dict[str, Any] | None = None,
    *,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
    seed: int,
    evaluation: bool = False,
    statistics: Sequence[Statistics] | None = None,
) -> RenderedEnv:
    """Makes environments like `make_vector_env`, with pictures: the environment's own, else its image observation.

    Arguments are those of `make_vector_env`.

    Raises:
        ValueError: As for `make_vector_env`, or the environment has neither pictures nor an image observation.
        EnvironmentFailure: As for `make_vector_env`.
    """
    kwargs = env_kwargs or {}
    making: dict[str, Any] = {"wrappers": wrappers, "time_limit": time_limit, "statistics": statistics}
    hosted = make_vector_env(env, num_envs, preset, kwargs, seed, evaluation, **making)
    if isinstance(hosted, GymnasiumEnv | MultiAgentEnv) and (mode := hosted.render_mode) is not None:
        hosted.close()
        drawn = type(hosted)(env, num_envs, _arguments(kwargs, time_limit), seed, wrappers=wrappers, render=mode)
        restore(drawn, statistics, evaluation=evaluation)
        return drawn
    atari = find_atari(env, preset, kwargs, wrappers, time_limit, evaluation=evaluation)
    if atari is not None:
        from kubebeast_envserver.envs.atari_screens import AtariScreens

        return AtariScreens(hosted, atari.game, atari.settings, seed)
    try:
        return ObservationFrames(hosted)
    except ValueError as error:
        hosted.close()
        raise ValueError(f"env = {env!r} cannot be shown: {error}") from error


def module_of(env: str) -> str:
    """Returns the module that an id names and that making it imports; "" for an id that is registered without one."""
    module, _, name = env.rpartition(":")
    return module or (module_of_joint_id(name) if is_joint_id(name) else "")


def num_agents_of(env: str, env_kwargs: dict[str, Any] | None = None, wrappers: Sequence[Wrapper] = ()) -> int:
    """Returns the number of agents of one environment, each of which num_envs counts.

    An id that may have several is made to count them. Raises the errors of make_vector_env.
    """
    if not is_joint_id(env):
        return 1
    made = _make_patiently(lambda: make_joint_env(env, env_kwargs or {}, wrappers))
    with contextlib.closing(made):
        return len(made.agents)


def _make_patiently(make: Callable[[], MadeT]) -> MadeT:
    backoff = Backoff()
    while True:
        try:
            return make()
        except EnvironmentFailure:
            delay_s = backoff.next_delay_s()
            if backoff.tries == MAX_TRIES:
                raise
            time.sleep(delay_s)


def resolve_config(
    env: str,
    preset: Preset = "auto",
    env_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
) -> EnvConfig:
    """Returns the settings with which `make_vector_env` makes an environment.

    Raises ValueError for arguments that it rejects before it makes one.
    """
    atari = find_atari(env, preset, env_kwargs, wrappers, time_limit)
    resolved, kwargs = ("none", env_kwargs or {}) if atari is None else (atari.preset, atari.kwargs)
    return EnvConfig(preset=resolved, kwargs=kwargs, wrappers=tuple(wrappers), time_limit=time_limit)


def find_action_meanings(
    env: str,
    preset: Preset = "auto",
    env_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
) -> list[str] | None:
    """Makes an environment and returns the names of its actions, in order; None if it has no names for them.

    Raises ValueError or EnvironmentFailure, and the errors of get_action_meanings.
    """
    kwargs = env_kwargs or {}
    atari = find_atari(env, preset, kwargs, wrappers, time_limit, evaluation=True)
    if atari is not None:
        return atari.make(1, seed=None).action_meanings
    if env == "Mock" or is_vector_id(env) or is_joint_id(env):
        return None
    with contextlib.closing(make_env(env, _arguments(kwargs, time_limit), wrappers)) as made:
        get_meanings = getattr(made.unwrapped, "get_action_meanings", None)
        if not callable(get_meanings) or made.action_space != made.unwrapped.action_space:
            return None
        return list(map(str, get_meanings()))


def _arguments(env_kwargs: dict[str, Any], time_limit: int) -> dict[str, Any]:
    """Returns arguments of gymnasium.make, with the time limit in place of the registered one."""
    return {**env_kwargs, "max_episode_steps": time_limit} if time_limit else env_kwargs


def _mock(num_envs: int, env_kwargs: dict[str, Any]) -> HostedEnv:
    try:
        return MockEnv(num_envs, **env_kwargs)
    except TypeError as error:
        raise ValueError(f"env_kwargs = {env_kwargs!r}: {error}") from error


def _vector(env: str, num_envs: int, env_kwargs: dict[str, Any], seed: int | None, evaluation: bool) -> HostedEnv:
    if env.rpartition(":")[2].startswith(ENVPOOL_PREFIX):
        return make_envpool(env, num_envs, env_kwargs, seed, evaluation=evaluation)
    envs = make_vec(env, num_envs, env_kwargs)
    try:
        return VectorEnvRows(envs, seed)
    except ValueError as error:
        envs.close()
        raise type(error)(f"env = {env!r}: {error}") from error
