"""Environment ids to vectors of environments: the public entrance for everybody who wants to step environments."""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kubebeast_common.backoff import Backoff, FaultPolicy
from kubebeast_common.env_config import EnvConfig, Wrapper
from kubebeast_envserver.config import MAX_SEED, Preset
from kubebeast_envserver.envs.atari_choice import AtariGame, find_atari
from kubebeast_envserver.envs.gymnasium_env import GymnasiumEnv, MakeCheck
from kubebeast_envserver.envs.joint_env import is_joint_id, make_joint_env
from kubebeast_envserver.envs.libraries.envpool_env import make_envpool
from kubebeast_envserver.envs.mock import MockEnv
from kubebeast_envserver.envs.multi_agent_env import MultiAgentEnv
from kubebeast_envserver.envs.vector_env import ENVPOOL_PREFIX, VectorEnvRows, is_vector_id, make_vec
from kubebeast_envserver.envs.wrapping import make_env
from kubebeast_envserver.faults.env_checks import EnvCheck
from kubebeast_envserver.rows.frame_stack import FullStacks
from kubebeast_envserver.rows.observation_frames import ObservationFrames
from kubebeast_envserver.rows.rows import EnvironmentFailure, HostedEnv, RenderedEnv, StepRows
from kubebeast_envserver.rows.spaces import Leaf
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
    "num_agents_of",
    "resolve_config",
]

MadeT = TypeVar("MadeT")

MAX_TRIES = 3
"""How often a constructor may fail in a row before it counts as broken: some fail now and then."""


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
) -> HostedEnv:
    """`num_envs` environments that step together (B), with NEXT_STEP autoreset.

    num_envs: of several agents in one environment each counts: a multiple of `num_agents_of`.
    env: a gymnasium id, module:Id (the module is imported first), vector/Id for what gymnasium.make_vec makes,
    pettingzoo/... for several agents (joint_env.PREFIX), envpool/Id of EnvPool, module:dm_env/Class, gym/Id of older
    gym, an Atari id, or Mock.
    preset: Atari preprocessing; auto goes by the id: PongNoFrameskip-v4 is atari-v4, ALE/Pong-v5 is atari-v5.
    env_kwargs: arguments of the environment, or overrides of the preset (AtariSettings).
    seed: environment i starts from seed + i; None takes seeds from the operating system.
    evaluation: play whole games: a lost life does not end an episode. All else is as in training.
    wrappers: around each environment, the first one innermost. Only those of gymnasium and PettingZoo take some.
    time_limit: steps after which an episode is truncated, in place of as many as the environment is registered with;
    wrappers are around it. 0 leaves those.
    full_stacks: rows hold whole frame stacks; without, the newest frame only, as it travels on the wire.
    policy: when one of several environments that keeps failing is given up. status: where failures are counted.
    make_check: for the space of observations and the mask in it, what looks at all that environments of gymnasium
    return.
    Raises ValueError for an id, preset, argument, wrapper or space that cannot be used, EnvironmentFailure when the
    environment's own constructor, or a wrapper's, raises in MAX_TRIES tries within a second.
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
) -> RenderedEnv:
    """`make_vector_env` for people to watch; draws as the environment does, else its image observation.

    Raises ValueError also for an environment that has neither.
    """
    kwargs = env_kwargs or {}
    hosted = make_vector_env(env, num_envs, preset, kwargs, seed, evaluation, wrappers=wrappers, time_limit=time_limit)
    if isinstance(hosted, GymnasiumEnv | MultiAgentEnv) and hosted.can_render:
        hosted.close()
        return type(hosted)(env, num_envs, _arguments(kwargs, time_limit), seed, wrappers=wrappers, render=True)
    atari = find_atari(env, preset, kwargs, wrappers, time_limit, evaluation=evaluation)
    if atari is not None:
        from kubebeast_envserver.envs.atari_screens import AtariScreens

        return AtariScreens(hosted, atari.game, atari.settings, seed)
    try:
        return ObservationFrames(hosted)
    except ValueError as error:
        hosted.close()
        raise ValueError(f"env = {env!r} cannot be shown: {error}") from error


def num_agents_of(env: str, env_kwargs: dict[str, Any] | None = None, wrappers: Sequence[Wrapper] = ()) -> int:
    """The agents of one environment, which num_envs counts; of an id that may have several, one is made to see.

    Raises as make_vector_env.
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
    """How `make_vector_env` makes that environment. ValueError for what it would refuse before it makes one."""
    atari = find_atari(env, preset, env_kwargs, wrappers, time_limit)
    resolved = "none" if atari is None else atari.preset
    return EnvConfig(preset=resolved, kwargs=env_kwargs or {}, wrappers=tuple(wrappers), time_limit=time_limit)


def find_action_meanings(
    env: str,
    preset: Preset = "auto",
    env_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
) -> list[str] | None:
    """What the environment's actions are called, in order; None where it does not say. Makes one.

    Raises ValueError or EnvironmentFailure, and whatever get_action_meanings raises.
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
    """Of gymnasium.make, whose time limit takes the place of the registered one."""
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
