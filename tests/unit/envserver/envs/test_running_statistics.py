"""Statistics of wrappers are read, merged and restored."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward

from kubebeast_envserver import HostedEnv, Wrapper, make_vector_env
from kubebeast_envserver.envs.vector_env import VectorEnvRows
from kubebeast_envserver.rows.advice import collected
from kubebeast_envserver.rows.rows import EnvironmentFailure
from kubebeast_envserver.rows.running_statistics import Statistics, merged, restore, shares, statistics_of

SIZES = f"{__name__}:Sizes-v0"
NORMALISED = [Wrapper("gymnasium.wrappers:NormalizeObservation"), Wrapper("gymnasium.wrappers:NormalizeReward")]
B = 3


class Sizes(gymnasium.Env[Any, Any]):
    """Observations around 1000; the first environment that reaches step `fails_at` fails in it."""

    def __init__(self, fails_at: int = 0) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._fails_at = fails_at
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._num_steps += 1
        if self._num_steps == self._fails_at:
            raise RuntimeError("it is enough")
        return self._observation(), 5.0, False, False, {}

    def _observation(self) -> Any:
        return (1000 + 5 * self.np_random.standard_normal(1)).astype(np.float32)


gymnasium.register("Sizes-v0", entry_point=f"{__name__}:Sizes", disable_env_checker=True, max_episode_steps=10)


def played(env: HostedEnv, num_steps: int = 50) -> tuple[Statistics, ...]:
    env.reset()
    for _ in range(num_steps):
        env.step([np.zeros(env.num_envs, np.int64)])
    return statistics_of(env)


def trained(**settings: Any) -> tuple[Statistics, ...]:
    return played(make_vector_env(SIZES, B, seed=1, wrappers=NORMALISED, statistics=(), **settings))


def test_statistics_of_several_environments_are_those_of_all_they_saw() -> None:
    of_rewards, of_observations = trained()
    assert [(each.wrapper, each.name) for each in (of_rewards, of_observations)] == [
        ("NormalizeReward", "return_rms"),
        ("NormalizeObservation", "obs_rms"),
    ]
    assert of_observations.count == pytest.approx(B * 51, abs=0.1)
    assert of_observations.mean[0] == pytest.approx(1000, abs=2)
    assert of_observations.variance[0] == pytest.approx(25, abs=10)
    one, other = np.random.default_rng(0).normal(3, 2, (2, 20))
    parts = [
        (Statistics("W", "rms", each.mean(keepdims=True), each.var(keepdims=True), 20.0),) for each in (one, other)
    ]
    (joined,) = merged(parts)
    both = np.concatenate([one, other])
    assert (joined.mean[0], joined.variance[0], joined.count) == (
        pytest.approx(both.mean()),
        pytest.approx(both.var()),
        40,
    )


def test_an_evaluation_plays_by_the_statistics_of_the_training_and_leaves_them() -> None:
    statistics = trained()
    env = make_vector_env(SIZES, B, seed=9, wrappers=NORMALISED, evaluation=True, statistics=statistics)
    rows = env.reset()
    assert np.abs(rows.observation[0]).max() < 5
    for before, after in zip(statistics, played(env), strict=True):
        np.testing.assert_allclose(after.mean, before.mean, rtol=1e-6)
        np.testing.assert_allclose(after.variance, before.variance, rtol=1e-6)
        assert after.count == pytest.approx(before.count)


def test_a_resumed_training_counts_on() -> None:
    statistics = trained()
    env = make_vector_env(SIZES, B, seed=9, wrappers=NORMALISED, statistics=statistics)
    resumed = played(env, 20)
    assert resumed[1].count == pytest.approx(B * (51 + 21), abs=0.1)
    assert resumed[1].mean[0] == pytest.approx(1000, abs=2)


def test_an_environment_that_is_created_again_keeps_what_it_has_counted() -> None:
    env = make_vector_env(SIZES, 1, env_kwargs={"fails_at": 30}, seed=1, wrappers=NORMALISED, statistics=())
    rows = env.reset()
    while not rows.interrupted.any():
        rows = env.step([np.zeros(1, np.int64)])
    rows = env.reset()
    rows.require_whole()
    assert statistics_of(env)[1].count > 30
    assert np.abs(rows.observation[0]).max() < 5


def test_vectors_have_statistics_of_their_own_wrappers() -> None:
    def make() -> VectorEnvRows:
        envs: VectorEnv[Any, Any, Any] = gymnasium.make_vec(SIZES, B)
        return VectorEnvRows(NormalizeReward(NormalizeObservation(envs)), seed=1)

    statistics = played(make())
    assert [each.name for each in statistics] == ["return_rms", "obs_rms"]
    env = make()
    restore(env, statistics, evaluation=True)
    assert np.abs(env.reset().observation[0]).max() < 5


@pytest.mark.parametrize(
    ("evaluation", "text"), [(False, "are not saved"), (True, "begin anew, so that the agent sees")]
)
def test_statistics_that_nobody_saves_are_advised_of(evaluation: bool, text: str) -> None:
    with collected() as advice:
        make_vector_env(SIZES, B, wrappers=NORMALISED, evaluation=evaluation)
    assert len(advice) == 1 and "NormalizeReward, NormalizeObservation: statistics of each environment" in advice[0]
    assert text in advice[0] and "--normalise-observations" in advice[0]
    with collected() as advice:
        make_vector_env(SIZES, B, evaluation=evaluation)
    assert advice == []


def test_statistics_of_other_wrappers_are_advised_of() -> None:
    statistics = trained()
    with collected() as advice:
        make_vector_env(SIZES, 1, wrappers=NORMALISED, evaluation=True, statistics=statistics[:1])
    assert advice == ["NormalizeObservation: its statistics obs_rms are not those of the run: they begin anew"]


def test_statistics_travel_as_plain_values() -> None:
    statistics = trained()
    again = [Statistics.from_plain(each.to_plain()) for each in statistics]
    assert [each.to_plain() for each in again] == [each.to_plain() for each in statistics]
    assert shares(again, 0.5)[0].count == statistics[0].count / 2
    for plain in (
        {},
        {"wrapper": "W"},
        {**statistics[0].to_plain(), "mean": [float("nan")]},
        {**statistics[0].to_plain(), "mean": ["x"]},
    ):
        with pytest.raises(ValueError, match="statistics"):
            Statistics.from_plain(plain)


class Spike(Sizes):
    """Sends one observation or reward of 1e200 in its first episode."""

    def __init__(self, of: str = "observation") -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self._of = of

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = super().step(action)
        return observation, self._number("reward", 1.0), terminated, truncated, info

    def _observation(self) -> Any:
        return np.full(1, self._number("observation", 3.0))

    def _number(self, of: str, usual: float) -> float:
        return 1e200 if self._of == of and SPIKES and self._num_steps == 5 and SPIKES.pop() else usual


SPIKES: list[bool] = []
gymnasium.register("Spike-v0", entry_point=f"{__name__}:Spike", disable_env_checker=True, max_episode_steps=10)


of_both = pytest.mark.parametrize("of", ["observation", "reward"])


@of_both
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_an_environment_whose_statistics_overflow_is_made_anew_with_the_last_finite_ones(of: str) -> None:
    SPIKES[:] = [True]
    env = make_vector_env(f"{__name__}:Spike-v0", 1, env_kwargs={"of": of}, seed=1, wrappers=NORMALISED, statistics=())
    before = played(env, 4)
    found = [played(env, 30) for _ in range(3)]
    assert not SPIKES, "the number was sent"
    assert all(each.is_finite for statistics in (before, *found) for each in statistics)
    of_rewards, of_observations = found[-1]
    assert of_observations.mean[0] == pytest.approx(3.0, abs=0.1)
    assert 0.0 < of_rewards.variance < 1e3


@of_both
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_a_vector_whose_statistics_overflow_fails_and_its_statistics_are_not_taken(of: str) -> None:
    SPIKES[:] = [True]
    both = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.wrappers.TimeLimit(Spike(of), 10)] * 2)
    env = VectorEnvRows(NormalizeReward(NormalizeObservation(both)), seed=1)
    # NormalizeReward divides the reward by the root of what has overflowed.
    reason = "the reward nan" if of == "reward" else "the statistics obs_rms of NormalizeObservation are not finite"
    with pytest.raises(EnvironmentFailure, match=reason):
        played(env)
    with pytest.raises(EnvironmentFailure, match="not finite"):
        env.statistics()
