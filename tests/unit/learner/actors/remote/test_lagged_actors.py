"""Settings of `train --lag` that cannot be repeated, or would block it, are refused."""

from dataclasses import replace
from typing import Any

import pytest

from kubebeast_learner.actors.remote.lagged_actors import with_room
from kubebeast_learner.config import ConfigError, LocalFleetConfig, PoolConfig, RolloutConfig, TasksConfig, TrainConfig


def config(queue: int = 0, **fleet: Any) -> TrainConfig:
    rollout = RolloutConfig(unroll_length=7, batch_size=4)
    return TrainConfig(
        pool=PoolConfig(address="", max_learner_queue_size=queue),
        rollout=rollout,
        fleet=LocalFleetConfig(env="Mock", num_actors=8, **fleet),
    )


def test_the_queue_holds_all_unrolls_that_are_ordered_at_one_time() -> None:
    found = with_room(config(lag=2)).pool
    assert found.max_learner_queue_size == 8 + 4 * 4
    assert found.min_partial_steps == 7, "an unroll that was cut off is played again"
    assert with_room(config(100, lag=2)).pool.max_learner_queue_size == 100
    free = config(3)
    assert with_room(free) is free


def test_a_queue_without_room_for_them_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_learner_queue_size = 23: must be at least 24 with lag = 2"):
        with_room(config(23, lag=2))


def test_several_learners_or_tasks_have_no_lag() -> None:
    with pytest.raises(ConfigError, match="num_learners = 2: one learner with one task"):
        config(lag=0, num_learners=2)
    with pytest.raises(ConfigError, match=r"task_shares = .*: one learner with one task"):
        replace(config(lag=0), tasks=TasksConfig(task_shares="Mock=1,Catch=1"))


def test_a_negative_lag_is_refused() -> None:
    with pytest.raises(ConfigError, match="lag = -1"):
        config(lag=-1)
