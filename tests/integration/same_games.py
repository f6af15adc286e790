"""A program that checks, in the virtual environment with ale-py and atari-py, that both play the same games."""

import numpy as np

from kubebeast_envserver.envs.atari import AtariEnv, settings_for
from kubebeast_envserver.rows.rows import StepRows

NUM_STEPS = 150


def play_both(game: str, grayscale: bool) -> int:
    """Plays the same actions in both; returns the number of training episodes that ended."""
    kwargs = {"noop_max": 0, "grayscale": grayscale}  # random starts differ
    today, older = (
        AtariEnv(game, 2, settings_for("atari-v4", {**kwargs, "emulator": emulator}, evaluation=False), seed=7)
        for emulator in ("ale_py", "atari_py")
    )
    assert (today.spec_observation, today.spec_action) == (older.spec_observation, older.spec_action)
    assert today.action_meanings == older.action_meanings
    rng = np.random.default_rng(0)
    rows = today.reset(), older.reset()
    num_ends = 0
    for _ in range(NUM_STEPS):
        compare(*rows)
        num_ends += int(rows[0].terminated.sum())
        actions = rng.integers(len(today.action_meanings), size=2)
        rows = today.step([actions]), older.step([actions])
    return num_ends


def compare(today: StepRows, older: StepRows) -> None:
    for name in ("rewards", "terminated", "truncated", "is_first"):
        np.testing.assert_array_equal(getattr(today, name), getattr(older, name), name)
    assert today.episodes == older.episodes
    # One may round half a gray level up, and the other down.
    np.testing.assert_allclose(today.observation[0].astype(int), older.observation[0], atol=1)


for game in ("pong", "breakout"):
    for grayscale in (True, False):
        print(game, "grey" if grayscale else "colour", play_both(game, grayscale), "episodes ended")
