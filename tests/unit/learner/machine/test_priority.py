"""Threads can lower their priority."""

import os
import sys
import threading

import pytest

from kubebeast_learner.machine.priority import give_way


def priority_of_this_thread() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is a whole process's")
def test_a_thread_gives_way_with_those_that_it_starts_and_nobody_else() -> None:
    seen: list[int] = []

    def run() -> None:
        give_way(3)
        seen.append(priority_of_this_thread())
        child = threading.Thread(target=lambda: seen.append(priority_of_this_thread()))
        child.start()
        child.join()

    before = priority_of_this_thread()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [min(before + 3, 19)] * 2  # 19 is the lowest priority (getpriority(2))
    assert priority_of_this_thread() == before


def test_a_sandbox_that_forbids_it_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(steps: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", forbidden)
    give_way(3)
