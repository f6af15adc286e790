"""The live table and the JSON lines show the same run."""

import io
import json
import logging
from dataclasses import replace

import pytest
from rich.console import Console
from rich.logging import RichHandler

from kubebeast_learner.algorithm.learner import UpdateStats
from kubebeast_learner.run.snapshot import Snapshot
from kubebeast_learner.training.progress import JsonProgress, TableProgress, make_progress, render

LOG_FIELDS = {"time", "level", "logger", "process", "message"}
START = Snapshot(
    step=0,
    total_steps=200_000,
    num_updates=0,
    num_skipped_updates=0,
    process_updates=0,
    process_skipped_updates=0,
    process_episodes=0,
    elapsed_s=1.0,
    sps=None,
    eta_s=None,
    episodes=0,
    mean_episode_return=None,
    mean_episode_step=None,
    last_update=None,
    learner_queue_size=0,
    learner_queue_capacity=16,
    rows_per_inference=None,
    starved_ratio=None,
    waited_s=0.0,
    inference_busy_ratio=None,
    streams=0,
    envs=0,
    actor_restarts=0,
    env_failures=None,
    steps_in_flight=None,
    steps_dropped_partial=None,
    steps_dropped_stale=None,
    checkpoint_age_s=None,
    checkpoint_time_s=None,
    checkpoint_bytes=None,
    checkpoint_failures=0,
    node_notices=0,
)
RUNNING = replace(
    START,
    step=50_000,
    sps=2345.6,
    eta_s=3725.0,
    episodes=321,
    mean_episode_return=-12.345,
    learner_queue_size=5,
    rows_per_inference=31.9,
    starved_ratio=0.25,
    streams=3,
    envs=48,
    last_update=UpdateStats(
        total_loss=1.5,
        parts={
            "pg_loss": float("nan"),
            "baseline_loss": 2.0,
            "entropy_loss": -0.5,
            "entropy": 1.777,
            "mean_rho": 1.0,
            "clipped_rho": 0.25,
        },
        grad_norm=9.0,
        policy_lag=1.25,
        num_transitions=160,
        learning_rate=0.0006,
        entropy_cost=0.01,
        version=312,
        skipped=False,
    ),
)


def recorded(snapshot: Snapshot) -> str:
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(render(snapshot, "pong"))
    return console.export_text()


def test_table_shows_where_the_run_is() -> None:
    text = recorded(RUNNING)
    shown = [
        "pong",
        "50,000 / 200,000",
        "2,346",
        "1:02:05",
        "-12.35",
        "321",
        "1.777",
        "5 / 16",
        "3 (48)",
        "31.9",
        "1.2",
    ]
    assert [part for part in shown if part not in text] == []
    assert "restarts" not in text


def test_table_of_a_run_that_has_not_begun_is_whole() -> None:
    assert recorded(START).count("\n") == recorded(RUNNING).count("\n")


def test_table_warns_of_restarts_and_lost_checkpoints() -> None:
    text = recorded(replace(RUNNING, actor_restarts=2, checkpoint_failures=1))
    assert "restarts of actors 2, failed checkpoints 1" in text


def test_table_warns_of_failed_environments_and_dropped_steps() -> None:
    text = recorded(replace(RUNNING, env_failures=3, steps_dropped_stale=1280))
    assert "episodes in no mean, as their environments failed 3, steps too old 1,280" in text
    assert "restarts" not in text


def test_json_has_every_value_and_null_where_there_is_none() -> None:
    stream = io.StringIO()
    JsonProgress(1.0, stream).show(RUNNING)
    JsonProgress(1.0, stream).show(START)
    running, start = map(json.loads, stream.getvalue().splitlines())
    assert running.keys() == start.keys() == RUNNING.flat().keys() | LOG_FIELDS
    assert (running["level"], running["message"]) == ("info", "progress")
    assert (running["step"], running["grad_norm"], running["pg_loss"]) == (50_000, 9.0, None)
    assert start["grad_norm"] is None


def test_auto_is_a_table_on_a_terminal_and_json_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    table = make_progress("auto", "pong", 1.0, terminal)
    table.close()
    assert isinstance(table, TableProgress)
    make_progress("auto", "pong", 1.0, Console(file=io.StringIO())).show(START)
    assert json.loads(capsys.readouterr().out)["total_steps"] == 200_000


def test_none_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    make_progress("none", "pong", 1.0, Console(file=io.StringIO())).show(START)
    assert capsys.readouterr().out == ""


def test_messages_scroll_above_the_table() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, force_interactive=True, width=100)
    progress = TableProgress("pong", console)
    progress.show(START)
    handler = RichHandler(console=console)
    handler.emit(logging.LogRecord("a", logging.WARNING, __file__, 1, "an env-server died", None, None))
    progress.show(RUNNING)
    progress.close()
    assert screen.getvalue().index("an env-server died") < screen.getvalue().rindex("50,000")
