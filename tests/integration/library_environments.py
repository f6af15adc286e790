"""Environments of other libraries give rows; test_libraries.py installs them and runs this."""

from typing import Any

import dm_env
import numpy as np
import pytest
from dm_env import specs

from kubebeast_envserver.envs.factory import EnvironmentFailure, make_vector_env

B, LENGTH = 2, 4


class Walk(dm_env.Environment):  # type: ignore[misc]
    """The walker's start is drawn by `seed`; an episode has LENGTH steps and ends with `last_discount`."""

    def __init__(self, seed: int = 0, last_discount: float = 0.0) -> None:
        self._random, self._last_discount = np.random.default_rng(seed), last_discount

    def observation_spec(self) -> Any:
        return {"place": specs.BoundedArray((1,), np.float32, 0.0, 99.0), "steps": specs.DiscreteArray(LENGTH + 1)}

    def action_spec(self) -> specs.DiscreteArray:
        return specs.DiscreteArray(3)

    def reset(self) -> dm_env.TimeStep:
        self._place, self._steps = self._random.random() * 90, 0
        return dm_env.restart(self._observation())

    def step(self, action: int) -> dm_env.TimeStep:
        self._place, self._steps = self._place + action, self._steps + 1
        if self._steps < LENGTH:
            return dm_env.transition(float(action), self._observation())
        return dm_env.TimeStep(dm_env.StepType.LAST, float(action), self._last_discount, self._observation())

    def _observation(self) -> dict[str, Any]:
        return {"place": np.array([self._place], np.float32), "steps": self._steps}


def make_words() -> Any:
    """Makes a dm_env.Environment with an observation that has no numbers."""
    walk: Any = Walk()
    walk.observation_spec = lambda: specs.StringArray(())
    return walk


def places_of(seed: int, num_envs: int = B) -> Any:
    env = make_vector_env(f"{__name__}:dm_env/Walk", num_envs, seed=seed)
    return [env.reset().observation[0][:, 0].tolist() for _ in range(2)]


def test_an_environment_of_dm_env_plays() -> None:
    for discount in (0.0, 1.0):
        env = make_vector_env(f"{__name__}:dm_env/Walk", B, env_kwargs={"last_discount": discount}, seed=1)
        assert [leaf.path for leaf in env.spec_observation] == ["place", "steps"]
        assert [leaf.num_categories for leaf in env.spec_action] == [3]
        rows = [env.reset(), *(env.step([np.array([1, 2])]) for _ in range(LENGTH + 1))]
        assert rows[LENGTH].episodes == [(0, float(LENGTH), LENGTH), (1, 2.0 * LENGTH, LENGTH)]
        assert rows[LENGTH].terminated.all() == (discount == 0.0) != rows[LENGTH].truncated.all()
        assert rows[LENGTH + 1].is_first.all()


def test_environments_of_dm_env_are_seeded_where_they_are_made() -> None:
    first, second = places_of(5)
    assert [first, second] == places_of(5)
    assert first[0] != first[1] and first != second
    assert first[1] == places_of(6, 1)[0][0]


def test_dm_env_takes_a_time_limit_and_wrappers() -> None:
    env = make_vector_env(f"{__name__}:dm_env/Walk", B, time_limit=2)
    env.reset()
    assert [env.step([np.zeros(B, np.int64)]).truncated.all() for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("env", "error", "message"),
    [
        ("dm_env/Walk", ValueError, "no module has 'Walk': write module:dm_env/Walk"),
        (f"{__name__}:dm_env/Run", ValueError, "library_environments.py has no Run"),
        (f"{__name__}:dm_env/make_words", EnvironmentFailure, "could not be made: .*StringArray"),
    ],
)
def test_what_dm_env_cannot_make_is_named(env: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_vector_env(env, B)


def test_minatar_images_are_bits() -> None:
    env = make_vector_env("MinAtar/Breakout-v1", B, seed=1)
    (leaf,) = env.spec_observation
    assert (leaf.dtype, leaf.shape, env.spec_action[0].num_categories) == ("bool", (10, 10, 4), 3)
    rows = [env.reset(), *(env.step([np.full(B, step % 3)]) for step in range(100))]
    assert sum(len(each.episodes) for each in rows) > 0
    assert not any(each.failures for each in rows)


def test_mujoco_observes_doubles_and_is_seeded() -> None:
    env, again = (make_vector_env("HalfCheetah-v5", B, seed=3) for _ in range(2))
    assert [(leaf.dtype, leaf.shape) for leaf in env.spec_observation] == [("float64", (17,))]
    assert [(leaf.shape, leaf.bounded) for leaf in env.spec_action] == [((6,), True)]
    first, second = env.reset(), again.reset()
    for _ in range(10):
        np.testing.assert_array_equal(first.observation[0], second.observation[0])
        first, second = (each.step([np.ones((B, 6), np.float32)]) for each in (env, again))
    assert not first.failures and (first.rewards != 0).all()
