"""A run never waits for a tracker with a thread of its own, and counts the calls that it does not take."""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.trackers import calls
from kubebeast_runs.trackers.calls import QueuedCalls


class Hanging:
    """A tracker that hangs in `log` until the event is set."""

    name = "hanging"
    takes_artifacts = False

    def __init__(self, patience_s: float = 60.0) -> None:
        self.patience_s = patience_s
        self.steps: list[int] = []
        self.has_called, self.may_go_on = threading.Event(), threading.Event()
        self.threads = set[int]()
        self.was_abandoned = self.has_ended = False

    def begin(self, meta: Mapping[str, Any]) -> None:
        self.threads.add(threading.get_ident())

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        self.threads.add(threading.get_ident())
        self.has_called.set()
        self.may_go_on.wait()
        self.steps.append(step)

    def artifact(self, step: int, path: Path) -> None: ...

    def end(self, *, successful: bool) -> None:
        self.has_ended = True

    def abandon(self) -> None:
        self.was_abandoned = True


@pytest.fixture
def failures(tmp_path: Path) -> WriteFailures:
    return WriteFailures(tmp_path, [Hanging.name])


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    tracker = Hanging()
    yield tracker
    tracker.may_go_on.set()


def fill(queued: QueuedCalls, tracker: Hanging, num_rows: int) -> None:
    """Lets the tracker hang in row 0, and passes it more rows."""
    queued.begin({})
    queued.log(0, {})
    tracker.has_called.wait()
    for step in range(1, 1 + num_rows):
        queued.log(step, {})


def test_the_oldest_rows_of_a_tracker_that_hangs_are_dropped_and_counted(
    failures: WriteFailures, hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    queued = QueuedCalls(hanging, failures)
    fill(queued, hanging, calls.MAX_QUEUED + 3)
    for _ in range(3):
        failures.report()
    assert failures.counts == {"hanging": 3}
    assert caplog.text.count("hanging is not written: 256 rows wait for it, and older ones are dropped") == 1

    hanging.may_go_on.set()
    queued.end(successful=True)
    queued.wait()
    failures.conclude()
    assert hanging.steps == [0, *range(5, 4 + calls.MAX_QUEUED)] and hanging.has_ended  # the end took a place, too
    assert failures.counts == {"hanging": 4} and not hanging.was_abandoned
    assert "can be written again; failed writes: 4 of hanging" in caplog.text


def test_the_end_does_not_wait_for_ever_and_counts_the_rows_that_are_left(
    failures: WriteFailures, hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    hanging.patience_s = 0.05
    queued = QueuedCalls(hanging, failures)
    fill(queued, hanging, 4)
    queued.end(successful=True)
    queued.wait()
    failures.conclude()
    assert failures.counts == {"hanging": 6} and hanging.was_abandoned  # five rows and the end
    assert "its last rows were not taken within 0 s" in caplog.text
    assert "failed writes until the end of the run: 6 of hanging" in caplog.text


def test_a_call_without_an_answer_is_reported_before_the_queue_is_full(
    failures: WriteFailures, hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    hanging.patience_s = 1e-9
    queued = QueuedCalls(hanging, failures)
    fill(queued, hanging, 1)
    failures.report()
    assert failures.counts == {"hanging": 0}
    assert "hanging is not written: no answer for 0 s" in caplog.text


def test_an_outage_lasts_as_long_as_rows_wait(
    failures: WriteFailures, hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    has_called, may_return = threading.Semaphore(0), threading.Semaphore(0)

    def log(step: int, values: Mapping[str, Any]) -> None:
        hanging.has_called.set()
        has_called.release()
        may_return.acquire()

    hanging.log = log  # type: ignore[method-assign]
    queued = QueuedCalls(hanging, failures)
    fill(queued, hanging, calls.MAX_QUEUED + 1)
    failures.report()
    may_return.release()
    for _ in range(2):
        has_called.acquire()
    failures.report()
    assert "failed writes" not in caplog.text

    may_return.release(calls.MAX_QUEUED)
    queued.end(successful=True)
    queued.wait()
    failures.report()
    assert "can be written again; failed writes: 1 of hanging" in caplog.text


def test_a_tracker_is_called_by_one_thread_that_is_not_the_run_s(failures: WriteFailures, hanging: Hanging) -> None:
    hanging.may_go_on.set()
    queued = QueuedCalls(hanging, failures)
    fill(queued, hanging, 10)
    queued.end(successful=True)
    queued.wait()
    assert hanging.steps == list(range(11))
    assert len(hanging.threads) == 1 and threading.get_ident() not in hanging.threads


def test_a_checkpoint_that_a_tracker_does_not_take_ends_no_outage(failures: WriteFailures, hanging: Hanging) -> None:
    queued = QueuedCalls(hanging, failures)
    fill(queued, hanging, 0)
    queued.artifact(0, Path("weights.safetensors"))
    hanging.patience_s = 0.0
    queued.end(successful=True)
    queued.wait()
    assert failures.counts == {"hanging": 2}  # the row and the end


def test_meta_is_that_of_the_beginning(failures: WriteFailures, hanging: Hanging) -> None:
    seen: list[Mapping[str, Any]] = []
    first = threading.Event()

    def begin(meta: Mapping[str, Any]) -> None:
        first.wait()
        seen.append(meta)

    hanging.begin = begin  # type: ignore[method-assign]
    queued = QueuedCalls(hanging, failures)
    meta = {"xpid": "run"}
    queued.begin(meta)
    meta["environment"] = "CartPole"
    first.set()
    queued.end(successful=True)
    queued.wait()
    assert seen == [{"xpid": "run"}]
