"""While one thread records, no other one starts work that may wait for the whole device; and the other way round."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch

from kubebeast_learner.machine.cuda_graph import _Recording, eager

TIMEOUT_S = 30.0


class Visitor(threading.Thread):
    """Enters a context, and stays until it is released."""

    def __init__(self, enter: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(daemon=True)
        self._enter = enter
        self.is_inside, self.may_leave = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self._enter():
            self.is_inside.set()
            self.may_leave.wait(TIMEOUT_S)

    def leave(self) -> None:
        self.may_leave.set()
        self.join(TIMEOUT_S)


@pytest.fixture
def state() -> _Recording:
    return _Recording()


def test_a_recording_waits_for_eager_work_and_the_next_eager_work_for_the_recording(state: _Recording) -> None:
    first, second = Visitor(state.eager), Visitor(state.eager)
    assert first.is_inside.wait(TIMEOUT_S) and second.is_inside.wait(TIMEOUT_S)
    recorder = Visitor(state.recording)
    first.leave()
    assert not recorder.is_inside.is_set()
    second.leave()
    assert recorder.is_inside.wait(TIMEOUT_S)
    late, other = Visitor(state.eager), Visitor(state.recording)
    assert not late.is_inside.is_set() and not other.is_inside.is_set()
    recorder.leave()
    late.may_leave.set()
    other.may_leave.set()
    assert late.is_inside.wait(TIMEOUT_S) and other.is_inside.wait(TIMEOUT_S)


def test_a_recording_comes_before_eager_work_that_begins_later(state: _Recording) -> None:
    """Otherwise threads with overlapping work would keep it out for good."""
    first = Visitor(state.eager)
    assert first.is_inside.wait(TIMEOUT_S)
    recorder = Visitor(state.recording)
    while state._num_waiting == 0:
        recorder.join(0.001)
    second = Visitor(state.eager)
    first.leave()
    assert recorder.is_inside.wait(TIMEOUT_S) and not second.is_inside.is_set()
    recorder.leave()
    assert second.is_inside.wait(TIMEOUT_S)
    second.leave()


def test_a_thread_that_records_may_enter_again_and_run_eagerly(state: _Recording) -> None:
    with state.recording(), state.recording(), state.eager():
        waiting = Visitor(state.eager)
        assert not waiting.is_inside.is_set()
    assert waiting.is_inside.wait(TIMEOUT_S)
    waiting.leave()


def test_an_error_inside_lets_the_others_go_on(state: _Recording) -> None:
    with pytest.raises(RuntimeError, match="failed"), state.recording():
        raise RuntimeError("failed")
    with pytest.raises(RuntimeError, match="failed"), state.eager():
        raise RuntimeError("failed")
    with state.recording():
        pass


def test_work_on_a_cpu_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    state = _Recording()
    monkeypatch.setattr("kubebeast_learner.machine.cuda_graph._process", state)
    recorder = Visitor(state.recording)
    assert recorder.is_inside.wait(TIMEOUT_S)
    with eager(torch.device("cpu")):
        recorder.leave()
