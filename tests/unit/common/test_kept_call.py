"""A kept call has the state of its side at the other one, whatever happens to the connection."""

import queue
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from kubebeast_common.access.kept_call import KeptCall, Service
from tests.scripted_calls import WAIT_S, ScriptedCalls, scripted_calls

METHOD = "/tests.Calls/Keep"


class Side:
    """The near side of a call."""

    def __init__(self, address: str, token_file: str = "") -> None:
        self.state = b"one"
        self.taken: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        service = Service(name="the tests", address=address, method=METHOD, token_file=token_file)
        self.call = KeptCall(service, state=lambda: self.state, take=self.taken.put, refresh_s=WAIT_S)
        self.call.start()

    def change(self, state: bytes) -> None:
        self.state = state
        self.call.look()

    def close(self) -> None:
        self.call.close()


@pytest.fixture
def calls() -> Iterator[ScriptedCalls]:
    with scripted_calls(METHOD) as server:
        yield server


def test_the_state_is_sent_at_first_and_whenever_it_changes(calls: ScriptedCalls) -> None:
    with closing(Side(calls.address)) as side:
        call = calls.next_call()
        assert call.next_message() == b"one"
        side.call.look()
        side.change(b"two")
        assert call.next_message() == b"two", "a look without a change sends nothing"
        call.end()


def test_a_call_is_up_from_the_first_answer_on(calls: ScriptedCalls) -> None:
    with closing(Side(calls.address)) as side:
        call = calls.next_call()
        assert call.next_message() == b"one"
        before = side.call.is_up
        call.send(b"answer")
        assert side.taken.get(timeout=WAIT_S) == b"answer"
        assert (before, side.call.is_up) == (False, True)
        call.end()


@pytest.mark.parametrize("status", [None, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT])
def test_a_call_that_ends_is_dialed_again_with_the_newest_state(
    calls: ScriptedCalls, status: grpc.StatusCode | None
) -> None:
    with closing(Side(calls.address)) as side:
        first = calls.next_call()
        assert first.next_message() == b"one"
        first.send(b"answer")
        assert side.taken.get(timeout=WAIT_S) == b"answer"
        side.state = b"two"
        first.end(status)
        second = calls.next_call()
        assert second.next_message() == b"two"
        second.end()


def test_a_change_while_there_is_no_call_is_not_sent_twice(calls: ScriptedCalls) -> None:
    with closing(Side(calls.address)) as side:
        calls.next_call().end(grpc.StatusCode.UNAVAILABLE)
        side.change(b"two")
        call = calls.next_call()
        messages = [call.next_message()]
        side.change(b"three")
        while messages[-1] != b"three":
            messages.append(call.next_message())
        assert messages in ([b"two", b"three"], [b"one", b"two", b"three"])
        call.end()


def test_the_end_sends_the_last_state_first(calls: ScriptedCalls) -> None:
    side = Side(calls.address)
    call = calls.next_call()
    assert call.next_message() == b"one"
    side.state = b"bye"
    side.call.end()
    assert side.call.is_ending
    assert call.next_message() == b"bye"
    assert call.next_message() is None
    call.end()
    side.close()


def test_a_close_returns_although_nobody_answers(calls: ScriptedCalls) -> None:
    side = Side(calls.address)
    call = calls.next_call()
    side.close()
    assert call.next_message() == b"one"
    call.end()


def test_the_token_is_read_again_for_each_call(calls: ScriptedCalls, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    with closing(Side(calls.address, str(token))):
        call = calls.next_call()
        assert call.metadata["authorization"] == "Bearer first"
        token.write_text("second")
        call.end()
        call = calls.next_call()
        assert call.metadata["authorization"] == "Bearer second"
        call.end()


def test_a_token_that_is_missing_for_a_while_delays_the_call_only(calls: ScriptedCalls, tmp_path: Path) -> None:
    token = tmp_path / "token"
    with closing(Side(calls.address, str(token))):
        token.write_text("late")
        call = calls.next_call()
        assert call.metadata["authorization"] == "Bearer late"
        call.end()
