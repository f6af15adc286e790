"""Actor processes share the environments in whole environments, and continue their statistics."""

import math
from pathlib import Path

import pytest

from kubebeast_learner.actors.mono.actors import MonoActors
from kubebeast_learner.actors.mono.parts import num_blocks, num_busy_processes, parts_of
from kubebeast_learner.config import ActorProcessesConfig, ConfigError, MonoConfig, ReplayConfig, RolloutConfig


def config(num_actors: int, num_actor_processes: int) -> MonoConfig:
    return MonoConfig(
        actors=ActorProcessesConfig(env="Team", num_actors=num_actors, num_actor_processes=num_actor_processes)
    )


@pytest.mark.parametrize(
    ("num_actors", "num_processes", "num_agents", "expected"),
    [(7, 2, 1, [4, 3]), (12, 2, 3, [6, 6]), (15, 2, 3, [9, 6]), (6, 4, 3, [3, 3]), (3, 2, 3, [3])],
)
def test_agents_of_an_environment_are_in_one_process(
    num_actors: int, num_processes: int, num_agents: int, expected: list[int]
) -> None:
    parts = parts_of(config(num_actors, num_processes), num_agents, None)
    assert [part.group_size for part in parts] == expected


@pytest.mark.parametrize("num_actors", [1, 4, 5])
def test_agents_that_are_no_whole_environments_are_refused(num_actors: int) -> None:
    with pytest.raises(ConfigError, match=rf"num_actors = {num_actors}: counts agents, .* multiple of the 3 of Team"):
        parts_of(config(num_actors, 1), 3, None)


@pytest.mark.parametrize(
    ("num_actors", "num_buffers", "batch_size", "waits", "expected"),
    [
        (16, 0, 16, False, 2),
        (16, 0, 40, False, 4),
        (16, 33, 16, False, 3),
        (16, 0, 16, True, 1),
        (48, 64, 16, True, 1),
        (8, 0, 16, True, 2),
        (16, 0, 40, True, 3),
    ],
)
def test_blocks_hold_a_batch_and_without_a_wait_the_next_one(
    num_actors: int, num_buffers: int, batch_size: int, waits: bool, expected: int
) -> None:
    actors = ActorProcessesConfig(num_actors=num_actors, num_buffers=num_buffers)
    rollout = RolloutConfig(batch_size=batch_size, wait_for_updates=waits)
    assert num_blocks(MonoConfig(actors=actors, rollout=rollout)) == expected


@pytest.mark.parametrize(("waits", "expected"), [(False, 2), (True, 1)])
def test_blocks_do_not_count_replayed_unrolls(waits: bool, expected: int) -> None:
    rollout = RolloutConfig(batch_size=64, wait_for_updates=waits)
    actors, replay = ActorProcessesConfig(num_actors=16), ReplayConfig(replay_share=0.75, replay_capacity=128)
    assert num_blocks(MonoConfig(actors=actors, replay=replay, rollout=rollout)) == expected


@pytest.mark.parametrize(("waits", "lag", "expected"), [(False, None, 3), (True, None, 0), (False, 0, 0), (True, 1, 0)])
def test_cores_are_the_learners_if_environments_wait_or_their_number_of_processes_must_not_count(
    waits: bool, lag: int | None, expected: int
) -> None:
    actors = ActorProcessesConfig(num_actors=16, num_actor_processes=3, lag=lag)
    assert num_busy_processes(MonoConfig(actors=actors, rollout=RolloutConfig(wait_for_updates=waits))) == expected


def test_saved_statistics_that_are_not_finite_do_not_keep_a_run_from_going_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved = {"wrapper": "NormalizeObservation", "name": "obs_rms", "mean": [1.0], "variance": [math.inf], "count": 5.0}
    assert MonoActors(MonoConfig(), tmp_path, [saved]).env_statistics() == []
    assert "the statistics obs_rms of NormalizeObservation are not finite: the wrappers begin anew" in caplog.text
