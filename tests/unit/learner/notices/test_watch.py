"""The thread that polls adds each notice once, and survives whatever a poll leads to."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kubebeast_learner.notices import watch
from kubebeast_learner.notices.inbox import Notices
from kubebeast_learner.notices.notice import Notice, NoticeError
from kubebeast_learner.notices.watch import NodeWatch, watching
from kubebeast_learner.ranks.place import Place

PATIENCE_S = 60.0
FIRST, SECOND = Notice("first", "it goes", "noon"), Notice("second", "it goes again")


class ScriptedSource:
    """Finds what a script says, poll by poll, and nothing afterwards."""

    def __init__(self, script: Sequence[Sequence[Notice] | Exception]) -> None:
        self._script = iter(script)
        self.is_over = threading.Event()

    def poll(self) -> Sequence[Notice]:
        step = next(self._script, None)
        if step is None:
            self.is_over.set()
            return ()
        if isinstance(step, Exception):
            raise step
        return step


@contextmanager
def watched(*script: Sequence[Notice] | Exception) -> Iterator[Notices]:
    """Yields the notices after the last step of the script."""
    source, notices = ScriptedSource(script), Notices()
    with closing(NodeWatch("script", source, notices, poll_s=0.001)):
        assert source.is_over.wait(PATIENCE_S)
        yield notices


def test_a_notice_that_stands_counts_once_and_the_next_one_again(caplog: pytest.LogCaptureFixture) -> None:
    with watched([FIRST], [FIRST], [FIRST, SECOND], [SECOND]) as notices:
        assert (notices.is_new, notices.take()) == (True, 2)
        assert (notices.is_new, notices.take()) == (False, 0)
    told = [text for text in caplog.messages if "notice for this node" in text]
    assert [text.partition(";")[0] for text in told] == [
        "notice for this node: it goes",
        "notice for this node: it goes again",
    ]
    assert "not before noon" in told[0]


def test_a_notice_that_was_gone_is_another_one() -> None:
    with watched([FIRST], [], [FIRST]) as notices:
        assert notices.take() == 2


def test_failures_are_counted_logged_once_and_forget_no_notice(caplog: pytest.LogCaptureFixture) -> None:
    errors = NoticeError("HTTP 503"), NoticeError("HTTP 503"), ZeroDivisionError("of a response")
    with caplog.at_level(logging.WARNING), watched([FIRST], *errors, [FIRST]) as notices:
        assert notices.take() == 1
        assert notices.num_failures == 3
    assert [text for text in caplog.messages if "node_notice" in text] == [
        "node_notice = 'script': HTTP 503; training goes on, and no notice is seen until a poll succeeds",
        "node_notice = 'script': polls succeed again",
    ]


def test_a_poll_that_hangs_keeps_nobody_from_closing() -> None:
    began, released = threading.Event(), threading.Event()

    class Hanging:
        def poll(self) -> Sequence[Notice]:
            began.set()
            assert released.wait(PATIENCE_S)
            return [FIRST]

    notices = Notices()
    with closing(NodeWatch("hanging", Hanging(), notices)):
        assert began.wait(PATIENCE_S)
    released.set()
    assert not notices.is_new


def test_one_rank_of_a_node_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    class Recorded(NodeWatch):
        def __init__(self, name: str, *arguments: object) -> None:
            opened.append(name)

        def close(self) -> None: ...

    monkeypatch.setattr(watch, "NodeWatch", Recorded)
    path = str(tmp_path / "notice")
    for place in (Place(), Place(rank=1, num_ranks=2, local_rank=1, num_local_ranks=2), Place(rank=2, num_ranks=3)):
        with watching(path, place, Notices()):
            pass
    with watching("", Place(), Notices()):
        pass
    assert opened == [path, path]
