"""Environment ids to vectors of environments: the public entrance for everybody who wants to step environments."""

import contextlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from kubebeast_common.backoff import Backoff, FaultPolicy
from kubebeast_common.env_config import EnvConfig
from kubebeast_envserver.config import MAX_SEED, Preset
from kubebeast_envserver.envs.gymnasium_env import GymnasiumEnv, make_env
from kubebeast_envserver.envs.mock import MockEnv
from kubebeast_envserver.rows.frame_stack import FullStacks
from kubebeast_envserver.rows.observation_frames import ObservationFrames
from kubebeast_envserver.rows.rows import EnvironmentFailure, HostedEnv, RenderedEnv, StepRows
from kubebeast_envserver.rows.spaces import Leaf
from kubebeast_envserver.rows.stream_status import StreamStatus

if TYPE_CHECKING:
    from kubebeast_envserver.envs.atari import AtariEnv, AtariSettings

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
    "find_action_meanings",
    "find_atari",
    "make_rendered_env",
    "make_vector_env",
    "resolve_config",
]


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
    full_stacks: bool = True,
    policy: FaultPolicy | None = None,
    status: StreamStatus | None = None,
) -> HostedEnv:
    """`num_envs` environments that step together (B), with NEXT_STEP autoreset.

    env: a gymnasium id, module:Id (the module is imported first), gym/Id of older gym, an Atari id, or Mock.
    preset: Atari preprocessing; auto goes by the id: PongNoFrameskip-v4 is atari-v4, ALE/Pong-v5 is atari-v5.
    env_kwargs: arguments of the environment, or overrides of the preset (AtariSettings).
    seed: environment i starts from seed + i; None takes seeds from the operating system.
    evaluation: play whole games: a lost life does not end an episode. All else is as in training.
    full_stacks: rows hold whole frame stacks; without, the newest frame only, as it travels on the wire.
    policy: when one of several environments that keeps failing is given up. status: where failures are counted.
    Raises ValueError for an id, preset, argument or space that cannot be used, EnvironmentFailure when the
    environment's own constructor raises in MAX_TRIES tries within a second.
    """
    if num_envs < 1:
        raise ValueError(f"num_envs = {num_envs}: must be at least 1")
    if seed is not None and not 0 <= seed <= MAX_SEED + 1 - num_envs:
        raise ValueError(f"seed = {seed}: must be 0 to {MAX_SEED} for each of {num_envs} environments")
    kwargs = env_kwargs or {}
    atari = find_atari(env, preset, kwargs, evaluation=evaluation)

    def make() -> HostedEnv:
        if env == "Mock":
            return _mock(num_envs, kwargs)
        if atari is None:
            return GymnasiumEnv(env, num_envs, kwargs, seed, policy=policy, status=status)
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
    seed: int,
    evaluation: bool = False,
) -> RenderedEnv:
    """`make_vector_env` for people to watch; draws as the environment does, else its image observation.

    Raises ValueError also for an environment that has neither.
    """
    kwargs = env_kwargs or {}
    hosted = make_vector_env(env, num_envs, preset, kwargs, seed, evaluation)
    if isinstance(hosted, GymnasiumEnv) and hosted.can_render:
        hosted.close()
        return GymnasiumEnv(env, num_envs, kwargs, seed, render=True)
    atari = find_atari(env, preset, kwargs, evaluation=evaluation)
    if atari is not None:
        from kubebeast_envserver.envs.atari_screens import AtariScreens

        return AtariScreens(hosted, atari.game, atari.settings, seed)
    try:
        return ObservationFrames(hosted)
    except ValueError as error:
        hosted.close()
        raise ValueError(f"env = {env!r} cannot be shown: {error}") from error


def _make_patiently(make: Callable[[], HostedEnv]) -> HostedEnv:
    backoff = Backoff()
    while True:
        try:
            return make()
        except EnvironmentFailure:
            delay_s = backoff.next_delay_s()
            if backoff.tries == MAX_TRIES:
                raise
            time.sleep(delay_s)


def resolve_config(env: str, preset: Preset = "auto", env_kwargs: dict[str, Any] | None = None) -> EnvConfig:
    """How `make_vector_env` makes that environment. ValueError for an id, preset or override that it would refuse."""
    atari = find_atari(env, preset, env_kwargs)
    return EnvConfig(preset="none" if atari is None else atari.preset, kwargs=env_kwargs or {})


def find_action_meanings(
    env: str, preset: Preset = "auto", env_kwargs: dict[str, Any] | None = None
) -> list[str] | None:
    """What the environment's actions are called, in order; None where it does not say. Makes one.

    Raises ValueError or EnvironmentFailure, and whatever get_action_meanings raises.
    """
    kwargs = env_kwargs or {}
    atari = find_atari(env, preset, kwargs, evaluation=True)
    if atari is not None:
        return atari.make(1, seed=None).action_meanings
    if env == "Mock":
        return None
    with contextlib.closing(make_env(env, kwargs)) as made:
        get_meanings = getattr(made.unwrapped, "get_action_meanings", None)
        return list(map(str, get_meanings())) if callable(get_meanings) else None


class AtariGame(NamedTuple):
    preset: str
    game: str
    settings: "AtariSettings"

    def make(self, num_envs: int, seed: int | None) -> "AtariEnv":
        """Raises ValueError for settings that ALE refuses."""
        from kubebeast_envserver.envs.atari import AtariEnv

        return AtariEnv(self.game, num_envs, self.settings, seed)


def find_atari(
    env: str, preset: Preset = "auto", env_kwargs: dict[str, Any] | None = None, *, evaluation: bool = False
) -> AtariGame | None:
    """What `make_vector_env` plays; None for environments without an Atari preset. Raises ValueError."""
    if preset not in get_args(Preset):
        raise ValueError(f"preset = {preset!r}: must be one of {', '.join(get_args(Preset))}")
    atari = None if env == "Mock" else _import_atari(env, preset)
    if atari is None:
        return None
    resolved = atari.find_preset(env) if preset == "auto" else preset
    if resolved is None or resolved == "none":
        return None
    return AtariGame(resolved, atari.find_game(env), atari.settings_for(resolved, env_kwargs or {}, evaluation))


def _mock(num_envs: int, env_kwargs: dict[str, Any]) -> HostedEnv:
    try:
        return MockEnv(num_envs, **env_kwargs)
    except TypeError as error:
        raise ValueError(f"env_kwargs = {env_kwargs!r}: {error}") from error


def _import_atari(env: str, preset: Preset) -> ModuleType | None:
    """The atari module, whose import also registers ALE's ids with gymnasium; None where ale-py is not installed."""
    try:
        from kubebeast_envserver.envs import atari
    except ImportError as error:
        if preset.startswith("atari") or env.startswith("ALE/") or "NoFrameskip" in env:
            raise ValueError(f"env = {env!r}: Atari games need ale-py: pip install 'ale-py>=0.12'") from error
        return None
    return atari
