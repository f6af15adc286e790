"""A run ends by its steps, its returns or its time."""

from dataclasses import replace

import pytest

from kubebeast_learner.config import RunConfig
from kubebeast_learner.run.ending import end_of
from kubebeast_learner.run.stats import RunStats
from kubebeast_learner.run.task_returns import RECENT_EPISODES
from tests.unit.learner.run.test_run_stats import UPDATE, Clock, Episode

RUN = RunConfig(total_steps=1000)


def stats(clock: Clock | None = None, tasks: tuple[str, ...] = ()) -> RunStats:
    return RunStats(total_steps=RUN.total_steps, tasks=tasks, clock=clock or Clock())


def test_a_run_ends_after_its_steps() -> None:
    run = stats()
    assert end_of(RUN, run) == ""
    run.add_update(replace(UPDATE, num_transitions=1000))
    assert end_of(RUN, run) == "it has made 1000 steps and total_steps is 1000"


@pytest.mark.parametrize(("returns", "ends"), [([7.5, 8.5], True), ([7.5, 8.4], False)])
def test_a_run_ends_at_a_mean_return_of_a_hundred_episodes(returns: list[float], ends: bool) -> None:
    config, run = replace(RUN, stop_at_return=8.0), stats()
    run.add_episodes(map(Episode, [-100.0, *returns * (RECENT_EPISODES // 2 - 1)]))
    assert end_of(config, run) == ""
    run.add_episodes(map(Episode, returns))
    reason = "the mean return of the newest 100 episodes is 8 and stop_at_return is 8"
    assert end_of(config, run) == (reason if ends else "")


def test_fewer_than_a_hundred_episodes_do_not_end_a_run() -> None:
    run = stats()
    run.add_episodes([Episode(100.0)] * (RECENT_EPISODES - 1))
    assert end_of(replace(RUN, stop_at_return=8.0), run) == ""


def test_each_of_several_tasks_has_to_reach_the_return() -> None:
    config, run = replace(RUN, stop_at_return=8.0), stats(tasks=("Pong", "Breakout"))
    run.add_episodes([Episode(100.0)] * RECENT_EPISODES)
    assert end_of(config, run) == "", "no episode of Breakout has ended"
    run.add_episodes([Episode(7.0, env_id="Breakout")] * RECENT_EPISODES)
    assert end_of(config, run) == ""
    run.add_episodes([Episode(9.0, env_id="Breakout")] * RECENT_EPISODES)
    assert end_of(config, run).startswith("the mean return of the newest 100 episodes is 9 and")


def test_hours_of_training_count_over_all_lives_of_a_run() -> None:
    config, clock = replace(RUN, max_hours=2.0), Clock()
    first = stats(clock)
    clock.now = 1000.0  # the wait for the first env-server
    first.begin()
    clock.now += 3600.0
    assert end_of(config, first) == ""
    second_clock = Clock(50.0)
    second = stats(second_clock)
    second.load_state_dict(first.state_dict(), 0, "Pong")
    second_clock.now += 10_000.0
    second.begin()
    assert end_of(config, second) == ""
    second_clock.now += 3600.0
    assert end_of(config, second) == "it has trained for 2 hours and max_hours is 2"
