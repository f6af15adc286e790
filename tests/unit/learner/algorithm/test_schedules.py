"""Schedules have the right values at the ends of the run, between and outside."""

import pytest

from kubebeast_learner.algorithm.schedules import anneal, entropy_cost_at, learning_rate_at
from kubebeast_learner.config import ConfigError, LossConfig, OptimizerConfig
from kubebeast_learner.config.learning import Schedule


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [5.0, 5.0, 5.0, 5.0]),
        ("linear", [5.0, 4.0, 3.0, 1.0]),
        ("cosine", [5.0, 3.0 + 2**0.5, 3.0, 1.0]),
    ],
)
def test_schedule_goes_from_the_initial_to_the_final_value(schedule: Schedule, expected: list[float]) -> None:
    assert [anneal(schedule, 5.0, 1.0, progress) for progress in (0.0, 0.25, 0.5, 1.0)] == pytest.approx(expected)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_schedule_stays_at_the_final_value_after_the_run(schedule: Schedule) -> None:
    assert anneal(schedule, 5.0, 1.0, 1.5) == pytest.approx(1.0)


def test_schedule_may_rise() -> None:
    assert anneal("linear", 1.0, 3.0, 0.5) == 2.0


def test_default_learning_rate_is_annealed_linearly_to_zero() -> None:
    config = OptimizerConfig(learning_rate=0.5)
    assert [learning_rate_at(step, 100, config) for step in (0, 50, 100, 101)] == [0.5, 0.25, 0.0, 0.0]


def test_warm_up_raises_the_learning_rate_under_the_schedule() -> None:
    config = OptimizerConfig(learning_rate=1.0, learning_rate_warmup_steps=20)
    rates = [learning_rate_at(step, 100, config) for step in (0, 10, 20, 50)]
    assert rates == pytest.approx([0.0, 0.5 * 0.9, 0.8, 0.5])


def test_default_entropy_cost_is_constant() -> None:
    config = LossConfig(entropy_cost=0.01)
    assert {entropy_cost_at(step, 100, config) for step in (0, 50, 100)} == {0.01}


def test_entropy_cost_is_annealed_when_chosen() -> None:
    config = LossConfig(entropy_cost=0.01, entropy_schedule="linear", entropy_cost_final=0.002)
    assert entropy_cost_at(50, 100, config) == pytest.approx(0.006)


@pytest.mark.parametrize(
    ("section", "field"),
    [
        (OptimizerConfig, "learning_rate_final"),
        (OptimizerConfig, "learning_rate_warmup_steps"),
        (LossConfig, "entropy_cost_final"),
    ],
)
def test_negative_values_are_refused(section: type, field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} = -1: must not be negative"):
        section(**{field: -1})
