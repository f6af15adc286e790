"""A stream with a task other than the run's is named once."""

import logging

import pytest

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.actors.remote.stream_tasks import MAX_TASKS, StreamTasks, read_env_config
from tests.unit.common.pool.test_stream_log import Event

OBSERVATION, ACTION = (Leaf("", "float32", (4,), 1, 0),), (Leaf("", "int64", (), 1, 2),)
EASY, HARD = EnvConfig(preset="none", kwargs={"size": 5}), EnvConfig(preset="none", kwargs={"size": 15})


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kubebeast_learner")


def run_of(env_config: EnvConfig | None) -> StreamTasks:
    return StreamTasks(EnvSpec("Maze-v0", OBSERVATION, ACTION, env_config))


def joined(env_id: str, env_config: EnvConfig | None) -> Event:
    return Event(kind="joined", env_id=env_id, env_config="" if env_config is None else env_config.to_json())


@pytest.mark.parametrize(
    ("stream", "named"),
    [
        (joined("Maze-v0", HARD), 'Maze-v0 with preset none, kwargs {"size": 15}'),
        (joined("Labyrinth-v0", EASY), 'Labyrinth-v0 with preset none, kwargs {"size": 5}'),
        (joined("Labyrinth-v0", None), "Labyrinth-v0"),
    ],
)
def test_another_task_is_named_beside_the_runs_once(
    stream: Event, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = run_of(EASY)
    tasks.compare([stream])
    tasks.compare([stream])
    assert caplog.messages == [
        f"pod-3 joined with another task, {named}; "
        'kubebeast eval will play the run\'s, Maze-v0 with preset none, kwargs {"size": 5}'
    ]
    assert caplog.records[0].levelname == "WARNING"


@pytest.mark.parametrize(
    ("run", "stream"),
    [
        (EASY, joined("Maze-v0", EASY)),
        (EASY, joined("Maze-v0", None)),
        (EASY, joined("mazes:Maze-v0", EASY)),
        (None, joined("Maze-v0", HARD)),
        (EASY, Event(kind="left", env_id="Labyrinth-v0")),
    ],
)
def test_nothing_is_said_of_what_is_equal_or_not_told(
    run: EnvConfig | None, stream: Event, caplog: pytest.LogCaptureFixture
) -> None:
    run_of(run).compare([stream])
    assert caplog.messages == []


def test_tasks_with_a_share_are_expected_and_remembered_as_they_are_made(caplog: pytest.LogCaptureFixture) -> None:
    tasks = StreamTasks(EnvSpec("Maze-v0", OBSERVATION, ACTION, EASY), ["Maze-v0", "Labyrinth-v0"])
    tasks.compare([joined("Maze-v0", EASY), joined("mazes:Labyrinth-v0", HARD), joined("Labyrinth-v0", None)])
    assert caplog.messages == []
    assert tasks.configs == {"Maze-v0": EASY, "Labyrinth-v0": HARD}


def test_a_task_with_a_share_that_is_made_in_two_ways_is_named(caplog: pytest.LogCaptureFixture) -> None:
    tasks = StreamTasks(EnvSpec("Maze-v0", OBSERVATION, ACTION, EASY), ["Maze-v0", "Labyrinth-v0"])
    tasks.compare([joined("Labyrinth-v0", HARD), joined("Labyrinth-v0", EASY)])
    assert caplog.messages == [
        'pod-3 joined with another task, Labyrinth-v0 with preset none, kwargs {"size": 5}; '
        'kubebeast eval will play the run\'s, Labyrinth-v0 with preset none, kwargs {"size": 15}'
    ]
    assert tasks.configs == {"Labyrinth-v0": HARD}


def test_peers_cannot_fill_the_log_with_tasks(caplog: pytest.LogCaptureFixture) -> None:
    run_of(EASY).compare(joined(f"Maze-v{number}", EASY) for number in range(1, 10 * MAX_TASKS))
    assert len(caplog.messages) == MAX_TASKS


def test_a_long_task_takes_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    run_of(EASY).compare([joined("Maze-v0", EnvConfig(preset="none", kwargs={"map": "#" * 8000}))])
    assert len(caplog.messages[0]) < 400


def test_what_is_no_json_counts_as_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert read_env_config('{"preset":') is None
    assert "env_config cannot be read and is passed over" in caplog.text
    assert read_env_config("") is None
