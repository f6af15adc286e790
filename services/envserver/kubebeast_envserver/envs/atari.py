"""Atari games in the vector environment of the Arcade Learning Environment, with the two common sets of settings."""

import difflib
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from ale_py import Action, roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from kubebeast_common.ids.env_id import parse_env_id
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.episodes import EpisodeCounter, info_of_one
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, StepRows, WithoutOptions, checked_rewards

if TYPE_CHECKING:
    from kubebeast_envserver.envs.atari_py_games import AtariPyGames


@dataclass(frozen=True, kw_only=True, slots=True)
class AtariSettings:
    """Settings of emulation and preprocessing. Every field may be overridden through env_kwargs."""

    emulator: str = "ale_py"
    """Emulator of the games: one of EMULATORS."""
    repeat_action_probability: float = 0.0
    """Sticky actions: the probability that a frame repeats the previous action."""
    noop_max: int = 30
    """Maximum number of no-op frames at the start of a game."""
    use_fire_reset: bool = True
    """If set, press FIRE at the start of a game that has it."""
    fire_after_life: bool = True
    """If set, FIRE replaces the first action after a lost life in a game that has it: some games wait for it."""
    episodic_life: bool = True
    """If set, a lost life terminates the training episode; the game continues."""
    frameskip: int = 4
    """Frames for which an action is held."""
    maxpool: bool = True
    """If set, frames show the maximum of the last two screens, against flicker."""
    frame_stack: int = 4
    """Frames per observation."""
    img_height: int = 84
    img_width: int = 84
    grayscale: bool = True
    full_action_space: bool = False
    """If set, all 18 actions instead of those that the game uses."""
    max_num_frames_per_episode: int = 108_000
    """Frames after which a game is truncated: 30 minutes."""

    def ale_arguments(self) -> dict[str, Any]:
        """Returns the settings that ale_py's AtariVectorEnv takes by the same names; AtariEnv implements the others."""
        ours = ("emulator", "fire_after_life", "episodic_life", "frame_stack")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ours}


EMULATORS = ("ale_py", "atari_py")
"""Packages that emulate the Atari: the current one, and that of gym until 0.19."""

PRESETS = {
    # The wrappers of TorchBeast, after DQN (Mnih et al. 2015, https://doi.org/10.1038/nature14236).
    "atari-v4": AtariSettings(),
    # Machado et al. 2018, section 5, https://arxiv.org/abs/1709.06009; with the game's own action set.
    "atari-v5": AtariSettings(
        repeat_action_probability=0.25, noop_max=0, use_fire_reset=False, fire_after_life=False, episodic_life=False
    ),
}


def find_game(env_id: str) -> str:
    """Returns the ROM of an id: "SpaceInvadersNoFrameskip-v4" → "space_invaders".

    Raises ValueError, with a list of similar games, for an unknown one.
    """
    games = _games()
    parsed = parse_env_id(env_id)
    name = parsed.atari_game or parsed.name
    if name in games:
        return games[name]
    if name in games.values():
        return name
    similar = difflib.get_close_matches(name.lower(), [game.lower() for game in games], n=5, cutoff=0.5)
    known = [game for game in games if game.lower() in similar]
    raise ValueError(f"env = {env_id!r}: no Atari game {name!r}; similar: {', '.join(known) or 'none'}")


def _games() -> dict[str, str]:
    """Returns ROM names, e.g. "space_invaders", by names as in gymnasium ids, e.g. "SpaceInvaders"."""
    return {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}


def settings_for(preset: str, env_kwargs: dict[str, Any], evaluation: bool) -> AtariSettings:
    """Returns the preset with overrides; evaluation plays whole games. Raises ValueError for an unknown override."""
    known = [field.name for field in fields(AtariSettings)]
    for name in env_kwargs:
        if name not in known:
            raise ValueError(f"env_kwargs = {name!r}: unknown to the preset {preset}, which has {', '.join(known)}")
    settings = replace(PRESETS[preset], **env_kwargs)
    if settings.emulator not in EMULATORS:
        raise ValueError(f"env_kwargs: emulator = {settings.emulator!r}: must be one of {', '.join(EMULATORS)}")
    return replace(settings, episodic_life=False) if evaluation else settings


class AtariEnv(WithoutOptions):
    """B games as a HostedEnv; observations hold the newest frame only.

    With episodic_life, the row of a lost life is terminated and the game continues in the next row, which is_first: the
    action that leads to it is a no-op or FIRE, and its reward counts for the game alone. ALE's own episodic_life would
    restart the game, and its life_loss_info would not press FIRE.
    """

    kind = "Atari games"
    num_agents = 1
    takes_turns = False

    def __init__(self, game: str, num_envs: int, settings: AtariSettings, seed: int | None) -> None:
        try:
            self._envs, action_set = _make_games(game, num_envs, settings)
        except (TypeError, ValueError, gymnasium.error.Error) as error:
            raise ValueError(f"env_kwargs: {error}") from error
        shape = (settings.img_height, settings.img_width) + (() if settings.grayscale else (3,))
        self.num_envs = num_envs
        self.spec_observation = [Leaf("", "uint8", shape, frame_stack=settings.frame_stack)]
        self.spec_action = [Leaf("", "int64", (), num_categories=len(action_set))]
        self.action_meanings = [action.name for action in action_set]
        self._episodic_life = settings.episodic_life
        self._resume_action: int | None = 0 if settings.episodic_life else None
        """Action that replaces the agent's after a lost life; None keeps the agent's."""
        if settings.fire_after_life and Action.FIRE in action_set:
            self._resume_action = action_set.index(Action.FIRE)
        self._seed = seed
        self._episodes = EpisodeCounter(num_envs)
        self._final = self._life_lost = np.zeros(num_envs, np.bool_)
        self._lives = np.zeros(num_envs, np.int32)

    def reset(self) -> StepRows:
        try:
            frames, info = self._envs.reset(seed=self._seed)
        except Exception as error:
            raise EnvironmentFailure(f"reset raised {error!r}") from error
        self._seed = None  # a later reset continues with the generators: it must not replay the same games
        self._episodes.reset()
        self._final = self._life_lost = np.zeros(self.num_envs, np.bool_)
        self._lives = info["lives"]
        return StepRows(
            observation=[frames[:, 0]],
            rewards=np.zeros(self.num_envs, np.float32),
            terminated=self._final,
            truncated=self._final,
            is_first=np.ones(self.num_envs, np.bool_),
            episodes=[],
        )

    def step(self, actions: list[Array]) -> StepRows:
        is_first, chosen = self._final, actions[0]
        if self._resume_action is not None:
            chosen = np.where(self._life_lost, self._resume_action, chosen)
        try:
            frames, raw_rewards, terminated, truncated, info = self._envs.step(chosen)
        except Exception as error:
            raise EnvironmentFailure(f"step raised {error!r}") from error
        rewards = checked_rewards(raw_rewards)
        over = terminated | truncated
        self._episodes.add(rewards, ~is_first)
        episodes = self._episodes.finish(over)
        rewards[is_first] = 0.0
        if (over & is_first).any():
            frames, info = self._restart(over & is_first)
            terminated, truncated = terminated & ~is_first, truncated & ~is_first
        lives = info["lives"]
        self._life_lost = (lives < self._lives) & (lives > 0) & ~over & ~is_first
        self._lives = lives
        terminated = terminated | (self._life_lost & self._episodic_life)
        self._final = terminated | truncated
        return StepRows(
            observation=[frames[:, 0]],
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            is_first=is_first,
            episodes=episodes,
            info_of=partial(info_of_one, info),
        )

    def _restart(self, envs: Array) -> tuple[Array, dict[str, Array]]:
        """Replaces games that ended when they were resumed: an is_first row cannot be final."""
        result: tuple[Array, dict[str, Array]] = self._envs.reset(options={"reset_mask": envs})
        return result

    def close(self) -> None:
        """Frees the emulators."""
        del self._envs


def _make_games(
    game: str, num_envs: int, settings: AtariSettings
) -> "tuple[AtariVectorEnv | AtariPyGames, list[Action]]":
    """Returns games and their action set. Raises TypeError, ValueError or gymnasium's Error for invalid settings."""
    if settings.emulator == "atari_py":
        try:
            from kubebeast_envserver.envs.atari_py_games import AtariPyGames
        except ImportError as error:
            raise ValueError(f"{error}: pip install 'kubebeast-envserver[legacy-atari]'") from error
        games = AtariPyGames(game, num_envs, settings)
        return games, games.action_set
    # One thread: streams are processes. Single frames: consumers that need stacks keep them (frame_stack).
    envs = AtariVectorEnv(
        game,
        num_envs,
        num_threads=1,
        stack_num=1,
        reward_clipping=False,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        **settings.ale_arguments(),
    )
    return envs, list(envs.ale.get_action_set())
