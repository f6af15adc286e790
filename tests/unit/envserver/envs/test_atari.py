"""Atari presets, lives and whole games follow their definitions."""

import sys
from collections.abc import Mapping
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from ale_py import Action
from ale_py.vector_env import AtariVectorEnv

from kubebeast_envserver.envs.atari import AtariEnv, AtariSettings, find_game, settings_for
from kubebeast_envserver.envs.factory import find_atari, make_vector_env, resolve_config

SPELLINGS = {
    "atari-v5": ["ALE/Pong-v5", "ale_py:ALE/Pong-v5", "gymnasium:ALE/Pong-v5", "ALE/Pong", "Pong-v5"],
    "atari-v4": ["PongNoFrameskip-v4", "ale_py:PongNoFrameskip-v4", "PongNoFrameskip", "Pong"],
}


@pytest.mark.parametrize(
    ("preset", "env_id"), [(preset, env_id) for preset, env_ids in SPELLINGS.items() for env_id in env_ids]
)
def test_every_spelling_of_an_id_plays_the_game_by_its_preset(preset: str, env_id: str) -> None:
    game = find_atari(env_id)
    assert game is not None and (game.preset, game.game, game.kwargs) == (preset, "pong", {})
    assert resolve_config(env_id).preset == preset


def test_version_0_repeats_actions_now_and_then() -> None:
    config = resolve_config("PongNoFrameskip-v0", env_kwargs={"noop_max": 1})
    assert (config.preset, config.kwargs) == ("atari-v4", {"repeat_action_probability": 0.25, "noop_max": 1})
    again = find_atari("PongNoFrameskip-v0", "atari-v4", dict(config.kwargs))
    assert again is not None and again.settings.repeat_action_probability == 0.25


def test_a_game_of_the_users_own_under_an_atari_name_is_no_game_of_ales(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_pong.py").write_text(
        "import gymnasium, warnings\n"
        "with warnings.catch_warnings(action='ignore'):\n"
        "    gymnasium.register('Pong-v4', entry_point='kubebeast_envserver.catch:Catch')\n"
    )
    (tmp_path / "my_other.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    assert find_atari("my_other:Pong-v4") is not None
    assert find_atari("my_pong:Pong-v4") is None
    assert make_vector_env("my_pong:Pong-v4", 1).spec_observation[0].shape == (10, 5)
    for name in ("my_pong", "my_other"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    ("env_id", "rom"),
    [
        ("SpaceInvadersNoFrameskip-v4", "space_invaders"),
        ("ALE/MsPacman-v5", "ms_pacman"),
        ("UpNDown-v4", "up_n_down"),
        ("beam_rider", "beam_rider"),
    ],
)
def test_the_game_is_found_by_its_id(env_id: str, rom: str) -> None:
    assert find_game(env_id) == rom


def test_the_presets_are_those_of_the_literature() -> None:
    v4, v5 = settings_for("atari-v4", {}, False), settings_for("atari-v5", {}, False)
    assert (v4.repeat_action_probability, v4.noop_max, v4.use_fire_reset, v4.episodic_life) == (0.0, 30, True, True)
    assert (v5.repeat_action_probability, v5.noop_max, v5.use_fire_reset, v5.episodic_life) == (0.25, 0, False, False)
    assert (v4.fire_after_life, v5.fire_after_life) == (True, False)
    for preset in (v4, v5):
        assert (preset.frameskip, preset.frame_stack, preset.grayscale, preset.maxpool) == (4, 4, True, True)
        assert (preset.img_height, preset.img_width) == (84, 84)
        assert preset.full_action_space is False


def test_evaluation_plays_whole_games_and_overrides_hold() -> None:
    settings = settings_for("atari-v4", {"noop_max": 1, "episodic_life": True}, evaluation=True)
    assert settings == AtariSettings(noop_max=1, episodic_life=False)
    assert settings.fire_after_life


def steps_of_a_game_without_fire(settings: AtariSettings, limit: int) -> int:
    """Returns the steps of a game of Breakout, in which only FIRE returns the ball; `limit` if it lasts longer."""
    env = AtariEnv("breakout", 1, settings, seed=3)
    env.reset()
    noop = np.zeros(1, np.int64)
    return next((step for step in range(1, limit) if env.step([noop]).episodes), limit)


def test_fire_is_pressed_after_a_life_whether_or_not_it_ends_an_episode() -> None:
    whole_games = settings_for("atari-v4", {}, evaluation=True)
    assert steps_of_a_game_without_fire(whole_games, 500) < 500
    assert steps_of_a_game_without_fire(AtariSettings(), 500) < 500


@pytest.mark.parametrize("episodic_life", [False, True])
def test_nobody_presses_fire_after_a_life_where_the_settings_do_not(episodic_life: bool) -> None:
    settings = AtariSettings(episodic_life=episodic_life, fire_after_life=False)
    assert steps_of_a_game_without_fire(settings, 500) == 500


def test_the_agent_plays_on_at_once_where_fire_is_not_pressed() -> None:
    """Whole games without FIRE: ALE receives every action unchanged."""
    env = AtariEnv("breakout", 1, AtariSettings(episodic_life=False, fire_after_life=False), seed=0)
    env._envs = emulator = LosesLives()  # type: ignore[assignment]
    env.reset()
    for _ in range(3):
        env.step([np.array([3])])
    assert emulator.actions == [3, 3, 3]


def test_fire_takes_the_place_of_one_action_after_a_life() -> None:
    env = AtariEnv("breakout", 1, settings_for("atari-v4", {}, evaluation=True), seed=0)
    env._envs = emulator = LosesLives()  # type: ignore[assignment]
    env.reset()
    lost, fired, after = (env.step([np.array([3])]) for _ in range(3))
    assert emulator.actions == [3, 1, 3]
    for rows in (lost, fired, after):
        assert (rows.terminated[0], rows.is_first[0], rows.rewards[0]) == (False, False, 10)


def test_lives_end_training_episodes_but_not_the_game() -> None:
    """Compares with ALE itself, which plays the same actions in the same whole games."""
    env = AtariEnv("breakout", 2, AtariSettings(), seed=7)
    reference = AtariVectorEnv("breakout", 2, num_threads=1, stack_num=1, reward_clipping=False)
    rows = env.reset()
    frames, info = reference.reset(seed=7)
    fire = list(reference.ale.get_action_set()).index(Action.FIRE)
    rng = np.random.default_rng(0)
    games, expected_games, lost_lives = [], [], 0
    returns, lengths, final, resumes = np.zeros(2), np.zeros(2, np.int64), np.zeros(2, bool), np.zeros(2, bool)
    for _ in range(800):
        actions = rng.integers(4, size=2)
        lives = info["lives"]
        rows = env.step([actions])
        frames, rewards, terminated, _, info = reference.step(np.where(resumes, fire, actions))
        np.testing.assert_array_equal(rows.observation[0], frames[:, 0])
        np.testing.assert_array_equal(rows.is_first, final)
        np.testing.assert_array_equal(rows.rewards, np.where(final, 0, rewards))
        resumes = (info["lives"] < lives) & ~terminated & ~final
        np.testing.assert_array_equal(rows.terminated, terminated | resumes)
        returns, lengths = returns + rewards, lengths + ~final
        final = terminated | resumes
        lost_lives += int(resumes.sum())
        games += rows.episodes
        for i in np.flatnonzero(terminated):
            expected_games.append((int(i), float(returns[i]), int(lengths[i])))
            returns[i] = lengths[i] = 0
    assert games == expected_games
    assert len(games) >= 4
    assert lost_lives == 4 * len(games) + (5 - info["lives"]).sum()
    assert max(total for _, total, _ in games) >= 1


def test_whole_games_are_played_without_episodic_life() -> None:
    env = AtariEnv("breakout", 1, AtariSettings(episodic_life=False), seed=7)
    env.reset()
    steps = [env.step([np.ones(1, np.int64)]) for _ in range(500)]
    assert [bool(rows.terminated[0]) for rows in steps] == [len(rows.episodes) == 1 for rows in steps]
    assert sum(len(rows.episodes) for rows in steps) >= 2


def test_rewards_are_not_clipped() -> None:
    env = AtariEnv("space_invaders", 4, AtariSettings(), seed=0)
    env.reset()
    fire = env.spec_action[0].num_categories
    rng = np.random.default_rng(1)
    rewards = [env.step([rng.integers(fire, size=4)]).rewards.max() for _ in range(150)]
    assert max(rewards) >= 5


class LosesLives:
    """Replaces ALE: a life is lost at step 1, and the game continues."""

    lives: Mapping[int, int] = {1: 2, 2: 2, 3: 2}
    over_at = 0

    def __init__(self) -> None:
        self.steps = 0
        self.actions: list[int] = []
        self.restarted: list[bool] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, np.ndarray] | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        if options is not None:
            self.restarted = options["reset_mask"].tolist()
        return np.full((1, 1, 84, 84), 200 if options else 100, np.uint8), {"lives": np.array([3])}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        self.steps += 1
        self.actions.append(int(actions[0]))
        frames = np.full((1, 1, 84, 84), self.steps, np.uint8)
        lives = np.array([self.lives.get(self.steps, 3)])
        return frames, np.array([10]), np.array([self.steps == self.over_at]), np.array([False]), {"lives": lives}


class EndsWhileResumed(LosesLives):
    """Replaces ALE: a life is lost at step 1, the game is over at step 2, which resumes it."""

    lives: Mapping[int, int] = {1: 2, 2: 0}
    over_at = 2


def test_a_game_that_ends_while_resumed_is_replaced_at_once() -> None:
    env = AtariEnv("breakout", 1, AtariSettings(), seed=0)
    emulator = EndsWhileResumed()
    env._envs = emulator  # type: ignore[assignment]
    env.reset()
    lost, resumed, after = (env.step([np.array([3])]) for _ in range(3))
    assert (lost.terminated[0], lost.rewards[0], lost.episodes) == (True, 10, [])
    assert (resumed.is_first[0], resumed.terminated[0], resumed.rewards[0]) == (True, False, 0)
    assert resumed.observation[0][0, 0, 0] == 200
    assert resumed.episodes == [(0, 20.0, 1)]
    assert emulator.restarted == [True]
    assert (after.is_first[0], after.terminated[0], after.rewards[0]) == (False, False, 10)
    assert emulator.actions == [3, 1, 3]
