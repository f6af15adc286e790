"""Environment ids to vectors of environments: the public entrance for everybody who wants to step environments."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, get_args

from kubebeast_envserver.frame_stack import FullStacks
from kubebeast_envserver.gymnasium_env import GymnasiumEnv
from kubebeast_envserver.mock import MockEnv
from kubebeast_envserver.rows import EnvironmentFailure, HostedEnv, StepRows
from kubebeast_envserver.spaces import Leaf

__all__ = ["EnvConfig", "EnvironmentFailure", "HostedEnv", "Leaf", "Preset", "StepRows", "make_vector_env"]

Preset = Literal["auto", "none", "atari-v4", "atari-v5"]


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
) -> HostedEnv:
    """`num_envs` environments with NEXT_STEP autoreset; the arguments are the fields of EnvConfig.

    full_stacks: rows hold whole frame stacks; without, the newest frame only, as it travels on the wire.
    Raises ValueError for an id, preset, argument or space that cannot be used, EnvironmentFailure when the
    environment's own constructor raises.
    """
    config = EnvConfig(
        env=env, num_envs=num_envs, preset=preset, env_kwargs=env_kwargs or {}, seed=seed, evaluation=evaluation
    )
    hosted = _make(config)
    stacked = any(leaf.frame_stack > 1 for leaf in hosted.spec_observation)
    return FullStacks(hosted) if full_stacks and stacked else hosted


def _make(config: EnvConfig) -> HostedEnv:
    if config.env == "Mock":
        return _mock(config)
    atari = _import_atari(config)
    preset = config.preset if config.preset != "auto" or atari is None else atari.find_preset(config.env)
    if atari is None or preset is None or preset == "none":
        return GymnasiumEnv(config.env, config.num_envs, config.env_kwargs, config.seed)
    settings = atari.settings_for(preset, config.env_kwargs, config.evaluation)
    hosted: HostedEnv = atari.AtariEnv(atari.find_game(config.env), config.num_envs, settings, config.seed)
    return hosted


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
