"""Levels travel to actor processes with their orders, and each environment plays those that are due."""

import contextlib
import itertools
import json
from collections.abc import Iterator

import numpy as np
import pytest

from kubebeast_common.backoff import FaultPolicy
from kubebeast_envserver.envs.factory import HostedEnv, make_vector_env
from kubebeast_envserver.rows.rows import OptionsError, StepRows
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.mono.level_queue import RECENT_BLOCKS, LevelQueue, LevelSupply
from tests.integration.leveled_env import EPISODE_STEPS, NONE

LEVELED = "tests.integration.leveled_env:Leveled-v0"
NUM_ENVS = 2
ACTIONS = [np.zeros(NUM_ENVS, np.int64)]


def text(level: int) -> str:
    return json.dumps({"level": level})


def counted(num_blocks: int = 2) -> LevelSupply:
    """Returns a supply of the levels 0, 1, 2, ..."""
    numbers = itertools.count()
    return LevelSupply(lambda count: [text(level) for level in itertools.islice(numbers, count)], NUM_ENVS, num_blocks)


@pytest.fixture
def env() -> Iterator[HostedEnv]:
    made = make_vector_env(LEVELED, NUM_ENVS)
    with contextlib.closing(made):
        yield made


def play_episode(env: HostedEnv, queue: LevelQueue) -> list[float]:
    """Plays from first rows to the next ones; returns the levels of the first rows."""
    for _ in range(EPISODE_STEPS):
        queue.note(env.step(ACTIONS))
    first: list[float] = env.step(ACTIONS).observation[0][:, 0].tolist()
    return first


def test_a_start_brings_a_level_for_each_environment_and_as_many_ahead() -> None:
    supply = counted()

    assert supply.begin() == tuple(map(text, range(4)))
    assert supply.refill() == ()


def test_an_order_brings_as_many_levels_as_were_taken() -> None:
    supply = counted()
    supply.begin()
    supply.note(1, 1)

    assert supply.refill() == (text(4),)
    assert supply.refill() == ()


def test_short_episodes_have_more_levels_ahead() -> None:
    supply = counted()
    supply.begin()
    supply.note(5, 2)

    assert len(supply.refill()) == 2 * 5


def test_each_of_the_blocks_that_are_ordered_ahead_has_levels_for_its_episodes() -> None:
    supply = counted(num_blocks=4)
    supply.begin()
    supply.note(5, 2)

    assert sum(len(supply.refill()) for _ in range(4)) == 4 * 5


def test_short_episodes_have_more_levels_ahead_over_a_few_blocks_without_an_end() -> None:
    supply = counted()
    supply.begin()
    supply.note(5, 2)
    supply.refill()
    for _ in range(RECENT_BLOCKS - 1):
        supply.note(0, 1)

        assert len(supply.refill()) == 1


def test_episodes_that_have_become_long_have_as_few_levels_ahead_as_at_the_start() -> None:
    supply = counted()
    supply.begin()
    supply.note(50, 2)
    num_ahead = len(supply.refill())
    for _ in range(RECENT_BLOCKS):
        supply.note(1, 0)

    assert supply.refill() == ()
    supply.note(1, num_ahead)
    assert len(supply.refill()) == NUM_ENVS


def test_levels_of_orders_that_a_next_process_repeats_count_as_ahead() -> None:
    supply = counted()
    supply.begin(num_repeated=3)
    supply.note(1, 4)

    assert len(supply.refill()) == 1


def test_each_reset_has_the_next_level(env: HostedEnv) -> None:
    queue = LevelQueue(env, list(map(text, range(4))), StreamStatus())

    assert env.reset().observation[0][:, 0].tolist() == [0.0, 1.0]
    assert queue.take_counts() == (0, 0), "levels of the start are none of an order"
    assert play_episode(env, queue) == [2.0, 3.0]
    assert [queue.of(place) for place in range(NUM_ENVS)] == [text(2), text(3)]


def test_an_environment_keeps_its_level_while_there_is_no_other(env: HostedEnv) -> None:
    queue = LevelQueue(env, list(map(text, range(3))), StreamStatus())
    env.reset()

    assert play_episode(env, queue) == [2.0, 1.0]
    assert queue.take_counts() == (2, 1)
    queue.add([text(8), text(9)])
    assert play_episode(env, queue) == [8.0, 9.0]


def place_row(*, is_first: bool) -> StepRows:
    """Returns rows in which environment 0 is broken, and environment 1 in the middle of an episode."""
    broken = np.array([True, False])
    return StepRows(
        observation=[],
        rewards=np.zeros(NUM_ENVS, np.float32),
        terminated=np.zeros(NUM_ENVS, np.bool_),
        truncated=broken & (not is_first),
        is_first=broken & is_first,
        episodes=[],
        interrupted=broken if not is_first else np.zeros(0, np.bool_),
    )


def test_a_broken_environment_gets_another_level_at_each_of_its_failures(env: HostedEnv) -> None:
    status = StreamStatus()
    queue = LevelQueue(env, list(map(text, range(6))), status)
    levels = []
    for fails in (True, False, False, True, False):  # the first in a step, and the fourth in a reset
        if fails:
            status.count_failure("exception")
        queue.note(place_row(is_first=False))
        queue.note(place_row(is_first=True))
        levels.append(queue.of(0))

    assert levels == [text(level) for level in (2, 2, 2, 3, 3)]
    assert queue.take_counts() == (2, 2)


def test_an_environment_that_is_given_up_takes_no_levels_from_the_others() -> None:
    status, policy = StreamStatus(), FaultPolicy(max_failures=1)
    kwargs = {"refused": 0}
    made = make_vector_env(LEVELED, NUM_ENVS, env_kwargs=kwargs, policy=policy, status=status)
    with contextlib.closing(made):
        queue = LevelQueue(made, list(map(text, range(20))), status)
        made.reset()
        played = [play_episode(made, queue)[1] for _ in range(5)]

    assert played == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_without_a_curriculum_resets_have_no_options(env: HostedEnv) -> None:
    queue = LevelQueue(env, (), StreamStatus())
    env.reset()

    assert play_episode(env, queue) == [NONE, NONE]
    assert queue.of(0) == ""
    assert queue.take_counts() == (0, 0)


def test_environments_that_take_no_options_are_refused() -> None:
    made = make_vector_env("tests.integration.leveled_env:Levelless-v0", 1)
    with contextlib.closing(made), pytest.raises(OptionsError, match="Levelless environments take no options"):
        LevelQueue(made, [text(0)], StreamStatus())
