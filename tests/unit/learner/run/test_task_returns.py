"""Returns are kept for each task, and for no more tasks than a scrape can hold."""

from collections.abc import Sequence
from typing import NamedTuple

from kubebeast_learner.run.task_returns import MAX_NAME, MAX_TASKS, OTHER, RECENT_EPISODES, TaskReturn, TaskReturns


class Episode(NamedTuple):
    env_id: str
    episode_return: float
    length: int = 1
    info: Sequence[float] = ()
    options: str = ""
    opponents: Sequence[int] = ()


def test_each_task_has_its_own_mean() -> None:
    tasks = TaskReturns()
    tasks.add([Episode("Pong", 1.0), Episode("Breakout", 100.0), Episode("Pong", 3.0)])
    assert tasks.newest == {"Pong": TaskReturn(2, 2.0), "Breakout": TaskReturn(1, 100.0)}


def test_the_mean_is_of_the_newest_and_the_count_of_all() -> None:
    tasks = TaskReturns()
    tasks.add([Episode("Pong", 0.0)] * 5)
    tasks.add([Episode("Pong", 1.0)] * RECENT_EPISODES)
    assert tasks.newest["Pong"] == TaskReturn(5 + RECENT_EPISODES, 1.0)


def test_tasks_beyond_the_limit_share_a_name() -> None:
    tasks = TaskReturns()
    tasks.add(Episode(f"Task-{i}", float(i)) for i in range(3 * MAX_TASKS))
    assert len(tasks.newest) == MAX_TASKS + 1
    assert tasks.newest[OTHER].num_episodes == 2 * MAX_TASKS


def test_a_name_is_cut_and_made_printable() -> None:
    tasks = TaskReturns()
    tasks.add([Episode("a\nb" * 1000, 0.0)])
    (name,) = tasks.newest
    assert len(name) == MAX_NAME
    assert name.startswith("a b")


def test_what_was_handed_out_does_not_change() -> None:
    tasks = TaskReturns()
    tasks.add([Episode("Pong", 1.0)])
    before = tasks.newest
    tasks.add([Episode("Pong", 3.0)])
    assert before == {"Pong": TaskReturn(1, 1.0)}


def test_restored_returns_count_for_the_mean_and_are_not_counted_again() -> None:
    tasks, resumed = TaskReturns(), TaskReturns()
    tasks.add([Episode("Pong", 1.0), Episode("Breakout", 100.0)])
    resumed.load_state_dict(tasks.state_dict())
    assert (resumed.means(), resumed.newest) == ({"Pong": 1.0, "Breakout": 100.0}, {})
    resumed.add([Episode("Pong", 3.0)])
    assert (resumed.means(), resumed.means(1)) == ({"Pong": 2.0, "Breakout": 100.0}, {"Pong": 3.0, "Breakout": 100.0})
    assert resumed.newest == {"Pong": TaskReturn(1, 2.0)}


def test_a_task_that_nobody_plays_any_more_is_not_saved() -> None:
    tasks, resumed = TaskReturns(), TaskReturns()
    tasks.add([Episode("Pong", 1.0), Episode("Breakout", 100.0)])
    resumed.load_state_dict(tasks.state_dict())
    assert resumed.state_dict() == tasks.state_dict(), "nobody has played yet"
    resumed.add([Episode("Pong", 3.0)])
    assert resumed.state_dict() == {"Pong": [1.0, 3.0]}
