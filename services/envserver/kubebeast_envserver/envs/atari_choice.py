"""Choice of the ids that play in ALE's vector environment, and of their settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from gymnasium.envs import registration

from kubebeast_common.ids.env_id import EnvId, parse_env_id
from kubebeast_common.spec.env_config import Wrapper, format_wrappers
from kubebeast_common.user_code import UserImportError, import_user_module
from kubebeast_envserver.config import Preset
from kubebeast_envserver.envs.agents.joint_ids import is_joint_id
from kubebeast_envserver.envs.registration import registered_id
from kubebeast_envserver.envs.vector_env import is_vector_id

if TYPE_CHECKING:
    from kubebeast_envserver.envs.atari import AtariEnv, AtariSettings


class AtariGame(NamedTuple):
    preset: str
    game: str
    settings: "AtariSettings"
    kwargs: dict[str, Any]
    """Overrides of the preset, by the id and by the user."""

    def make(self, num_envs: int, seed: int | None) -> "AtariEnv":
        """Makes the games. Raises ValueError for settings that ALE rejects."""
        from kubebeast_envserver.envs.atari import AtariEnv

        return AtariEnv(self.game, num_envs, self.settings, seed)


def find_atari(
    env: str,
    preset: Preset = "auto",
    env_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Wrapper] = (),
    time_limit: int = 0,
    *,
    evaluation: bool = False,
) -> AtariGame | None:
    """Returns the game that `make_vector_env` plays; None if the environment has no Atari preset. Raises ValueError."""
    if preset not in get_args(Preset):
        raise ValueError(f"preset = {preset!r}: must be one of {', '.join(get_args(Preset))}")
    kwargs = env_kwargs or {}
    _check_time_limit(time_limit, env, kwargs)
    if env == "Mock":
        _refuse_wrappers(wrappers, "Mock is a whole vector of environments")
    if is_vector_id(env):
        _refuse_wrappers(wrappers, "vector/ and envpool/ stand for a whole vector of environments")
    if env == "Mock":
        return None
    parsed = parse_env_id(env)
    resolved = parsed.atari_preset if preset == "auto" else preset
    atari = _import_atari(env, resolved)
    if atari is None or resolved is None or resolved == "none":
        return None
    if preset == "auto":
        if not _is_of_ale(parsed):
            return None
        kwargs = {**parsed.atari_overrides, **kwargs}
    _refuse_wrappers(wrappers, f"the preset {resolved} plays in ALE's own vector; --preset none plays single games")
    settings = atari.settings_for(resolved, kwargs, evaluation)
    if time_limit:
        settings = replace(settings, max_num_frames_per_episode=time_limit * settings.frameskip)
    return AtariGame(resolved, atari.find_game(env), settings, kwargs)


def _check_time_limit(time_limit: int, env: str, env_kwargs: Mapping[str, Any]) -> None:
    if time_limit < 0:
        raise ValueError(f"time_limit = {time_limit}: must not be negative")
    if time_limit and env == "Mock":
        raise ValueError(f"time_limit = {time_limit}: Mock has none, but the argument episode_length (env_kwargs)")
    if time_limit and is_joint_id(env):
        raise ValueError(f"time_limit = {time_limit}: PettingZoo has none; see env_kwargs, e.g. max_cycles")
    for name in ("max_episode_steps", "max_num_frames_per_episode"):
        if time_limit and name in env_kwargs:
            raise ValueError(f"time_limit = {time_limit}: env_kwargs set {name} = {env_kwargs[name]!r}: choose one")


def _refuse_wrappers(wrappers: Sequence[Wrapper], reason: str) -> None:
    if wrappers:
        raise ValueError(f"wrappers = {format_wrappers(wrappers)!r}: there is no single environment to wrap: {reason}")


def _import_atari(env: str, preset: str | None) -> ModuleType | None:
    """Imports the atari module, which also registers ALE's ids with gymnasium.

    Returns None if ale-py is not installed, or raises ValueError if the preset or the id needs it.
    """
    try:
        from kubebeast_envserver.envs import atari
    except ImportError as error:
        if (preset or "").startswith("atari") or parse_env_id(env).atari_preset is not None:
            raise ValueError(f"env = {env!r}: Atari games need ale-py: pip install 'kubebeast[atari]'") from error
        return None
    return atari


def _is_of_ale(parsed: EnvId) -> bool:
    """Returns True if ALE plays an Atari id: a module of the user may have registered its own game under this name."""
    if parsed.module in ("", "ale_py", "gymnasium"):
        return True
    try:
        import_user_module(parsed.module)
    except UserImportError:  # making the environment reports this error
        return False
    spec = registration.registry.get(registered_id(parsed.plain))
    return spec is None or str(spec.entry_point).startswith("ale_py.")
