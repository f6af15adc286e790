"""Environment ids to vectors of environments: the public entrance for everybody who wants to step environments."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from kubebeast_envserver.config import Preset
from kubebeast_envserver.frame_stack import FullStacks
from kubebeast_envserver.guarded_env import FaultPolicy
from kubebeast_envserver.gymnasium_env import GymnasiumEnv
from kubebeast_envserver.mock import MockEnv
from kubebeast_envserver.observation_frames import ObservationFrames
from kubebeast_envserver.rows import EnvironmentFailure, HostedEnv, RenderedEnv, StepRows
from kubebeast_envserver.spaces import Leaf
from kubebeast_envserver.stream_status import StreamStatus

if TYPE_CHECKING:
    from kubebeast_envserver.atari import AtariSettings

__all__ = [
    "EnvConfig",
    "EnvironmentFailure",
    "FaultPolicy",
    "HostedEnv",
    "Leaf",
    "Preset",
    "RenderedEnv",
    "StepRows",
    "make_rendered_env",
    "make_vector_env",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvConfig:
    """Which environments to make."""

    env: str
    """A gymnasium id, module:Id (the module is imported first), an Atari id, or Mock."""
    num_envs: int
    """Environments that step together (B)."""
    preset: Preset = "auto"
    """Atari preprocessing; auto goes by the id: PongNoFrameskip-v4 is atari-v4, ALE/Pong-v5 is atari-v5."""
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment, or overrides of the preset (AtariSettings)."""
    seed: int | None = None
    """Environment i starts from seed + i; None takes seeds from the operating system."""
    evaluation: bool = False
    """Play whole games: a lost life does not end an episode."""

    def __post_init__(self) -> None:
        if self.num_envs < 1:
            raise ValueError(f"num_envs = {self.num_envs}: must be at least 1")
        if self.preset not in get_args(Preset):
            raise ValueError(f"preset = {self.preset!r}: must be one of {', '.join(get_args(Preset))}")


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
    """`num_envs` environments with NEXT_STEP autoreset; the arguments are the fields of EnvConfig.

    full_stacks: rows hold whole frame stacks; without, the newest frame only, as it travels on the wire.
    policy: when one of several environments that keeps failing is given up. status: where failures are counted.
    Raises ValueError for an id, preset, argument or space that cannot be used, EnvironmentFailure when the
    environment's own constructor raises.
    """
    config = EnvConfig(
        env=env, num_envs=num_envs, preset=preset, env_kwargs=env_kwargs or {}, seed=seed, evaluation=evaluation
    )
    hosted = _make(config, policy, status)
    stacked = any(leaf.frame_stack > 1 for leaf in hosted.spec_observation)
    return FullStacks(hosted) if full_stacks and stacked else hosted


def make_rendered_env(
    env: str, num_envs: int, preset: Preset = "auto", *, seed: int, evaluation: bool = False
) -> RenderedEnv:
    """`make_vector_env` for people to watch; draws as the environment does, else its image observation.

    Raises ValueError also for an environment that has neither.
    """
    config = EnvConfig(env=env, num_envs=num_envs, preset=preset, seed=seed, evaluation=evaluation)
    hosted = make_vector_env(env, num_envs, preset, seed=seed, evaluation=evaluation)
    if isinstance(hosted, GymnasiumEnv) and hosted.can_render:
        hosted.close()
        return GymnasiumEnv(env, num_envs, {}, seed, render=True)
    atari = _find_atari(config)
    if atari is not None:
        from kubebeast_envserver.atari_screens import AtariScreens

        return AtariScreens(hosted, atari.game, atari.settings, seed)
    try:
        return ObservationFrames(hosted)
    except ValueError as error:
        hosted.close()
        raise ValueError(f"env = {env!r} cannot be shown: {error}") from error


def _make(config: EnvConfig, policy: FaultPolicy | None, status: StreamStatus | None) -> HostedEnv:
    if config.env == "Mock":
        return _mock(config)
    atari = _find_atari(config)
    if atari is None:
        return GymnasiumEnv(config.env, config.num_envs, config.env_kwargs, config.seed, policy=policy, status=status)
    from kubebeast_envserver.atari import AtariEnv

    return AtariEnv(atari.game, config.num_envs, atari.settings, config.seed)


class _Atari(NamedTuple):
    game: str
    settings: "AtariSettings"


def _find_atari(config: EnvConfig) -> _Atari | None:
    """The game and how it is played; None for environments without an Atari preset."""
    atari = None if config.env == "Mock" else _import_atari(config)
    if atari is None:
        return None
    preset = atari.find_preset(config.env) if config.preset == "auto" else config.preset
    if preset is None or preset == "none":
        return None
    return _Atari(atari.find_game(config.env), atari.settings_for(preset, config.env_kwargs, config.evaluation))


def _mock(config: EnvConfig) -> HostedEnv:
    try:
        return MockEnv(config.num_envs, **config.env_kwargs)
    except TypeError as error:
        raise ValueError(f"env_kwargs = {config.env_kwargs!r}: {error}") from error


def _import_atari(config: EnvConfig) -> ModuleType | None:
    """The atari module, whose import also registers ALE's ids with gymnasium; None where ale-py is not installed."""
    try:
        from kubebeast_envserver import atari
    except ImportError as error:
        if config.preset.startswith("atari") or config.env.startswith("ALE/") or "NoFrameskip" in config.env:
            raise ValueError(
                f"env = {config.env!r}: Atari games need ale-py: pip install 'kubebeast-envserver[atari]'"
            ) from error
        return None
    return atari
