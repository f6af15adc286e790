"""The learner and an actor process exchange messages of any size, and neither keeps the other waiting."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from kubebeast_learner.actors.mono import actor_process
from kubebeast_learner.actors.mono.actor import FilledBlock, LogLine
from kubebeast_learner.actors.mono.actor_process import ActorProcess

PATIENCE_S = 60.0
MUCH = "x" * 2**20
"""More than a pipe holds."""


class NoBlocks:
    def blocks_in(self, memory: object, num_envs: int) -> list[Any]:
        return []


@dataclass
class Task:
    folder: Path
    num_envs: int = 1
    seeds: tuple[int, ...] = (1,)
    layout: NoBlocks = field(default_factory=NoBlocks)
    memory: None = None
    levels: tuple[str, ...] = ()


def talk(task: Task, learner: Connection) -> None:
    """Sends much before each read, and leaves a file at a good end."""
    while True:
        learner.send(LogLine(logging.INFO, MUCH))
        order = learner.recv()
        if order is None:
            break
        learner.send(FilledBlock(order.number, [], level_counts=(2, 2)))
    (task.folder / "stopped").touch()
    sys.exit(0)


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ActorProcess]:
    monkeypatch.setattr(actor_process, "run_actor", talk)

    def make_task(num_starts: int, status: object) -> Any:
        return Task(tmp_path)

    process = ActorProcess(0, make_task, PATIENCE_S, lambda count: [MUCH] * count)
    process.start()
    yield process
    process.end(0.0)


def receive(process: ActorProcess) -> int | None:
    filled = process.receive()
    return None if filled is None else filled.number


def test_an_order_of_many_levels_does_not_wait_for_a_process_that_sends(process: ActorProcess) -> None:
    process.order(0)
    assert [receive(process) for _ in range(2)] == [None, 0]
    process.order(1)

    assert [receive(process) for _ in range(2)] == [None, 1]


def test_a_process_that_has_much_to_send_at_the_end_stops_by_itself(process: ActorProcess, tmp_path: Path) -> None:
    process.order(0)
    process.ask_to_stop()
    process.end(PATIENCE_S)

    assert (tmp_path / "stopped").exists()


def test_an_order_that_a_process_has_not_read_is_left_for_the_next_one(process: ActorProcess) -> None:
    process.order(0)
    assert [receive(process) for _ in range(2)] == [None, 0]
    process.order(1)
    process.end(0.0)
    process.start()

    assert [receive(process) for _ in range(2)] == [None, 1]
