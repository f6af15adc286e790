"""A stream plays with the learner that its broker assigns, reports the others, and has a way without a broker."""

import math
from collections.abc import Iterator

import pytest

from kubebeast_common.access.kept_call import Service
from kubebeast_envserver.stream import broker
from kubebeast_envserver.stream.broker import BrokeredLearners, UnassignedError
from kubebeast_envserver.stream.learners import Learner
from kubebeast_envserver.stream.session import Identity
from kubebeast_envserver.stream.shutdown import Shutdown
from kubebeast_protos.v1 import broker_pb2 as pb
from tests.scripted_calls import WAIT_S, ScriptedCalls, scripted_calls

ONE = Learner("127.0.0.1:4441", run="small", instance_id="one")
TWO = Learner("127.0.0.1:4442", run="large", instance_id="two")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Stream:
    """The stream of a test at its broker."""

    def __init__(self, calls: ScriptedCalls) -> None:
        self.clock = Clock()
        self.shutdown = Shutdown()
        identity = Identity(env_server_id="pod-0", instance_id="stream-0", env_id="CartPole-v1", run="small")
        service = Service(name="the broker", address=calls.address, method=broker.METHOD)
        self.learners = BrokeredLearners(service, identity, self.shutdown, clock=self.clock)
        self._calls = calls
        self.call = calls.next_call()

    def state(self) -> pb.StreamState:
        """Waits for the next state of the stream."""
        message = self.call.next_message()
        assert message is not None
        return pb.StreamState.FromString(message)

    def assign(self, learner: Learner | None) -> None:
        """Sends an assignment, and blocks until the stream has it."""
        address, run, name = (learner.address, learner.run, learner.instance_id) if learner else ("", "", "")
        self.call.send(pb.Assignment(learner_id=name, run_id=run, address=address).SerializeToString())
        self.learners._news.get(timeout=WAIT_S)
        assert self.learners._assigned == learner

    def play_with(self, learner: Learner) -> None:
        self.assign(learner)
        assert self.learners.next() == learner
        self.learners.note_welcome()
        assert self.state().playing == learner.instance_id


@pytest.fixture
def calls() -> Iterator[ScriptedCalls]:
    with scripted_calls(broker.METHOD) as server:
        yield server


@pytest.fixture
def stream(calls: ScriptedCalls) -> Iterator[Stream]:
    made = Stream(calls)
    yield made
    made.learners._call.end()
    made.call.end()
    made.learners.close()


def test_the_first_state_names_the_stream_and_the_run_that_it_wants(stream: Stream) -> None:
    state = stream.state()
    assert (state.instance_id, state.env_id, state.wanted_run) == ("stream-0", "CartPole-v1", "small")
    assert state.playing == "" and list(state.refused_by) == []


def test_the_assigned_learner_is_dialed_and_then_reported(stream: Stream) -> None:
    stream.state()
    stream.play_with(ONE)
    stream.learners.note_end(was_welcomed=True)
    assert stream.state().playing == ""


def test_another_assignment_lets_the_stream_leave_once(stream: Stream) -> None:
    stream.state()
    stream.play_with(ONE)
    left: list[str] = []
    with stream.learners.calling_home(ONE, lambda: left.append("one")):
        stream.assign(TWO)
        stream.assign(TWO)
        stream.learners.note_end(was_welcomed=True)
        assert stream.learners.next() == TWO
    assert left == ["one"]


def test_an_assignment_before_the_session_began_counts(stream: Stream) -> None:
    stream.state()
    stream.play_with(ONE)
    stream.assign(TWO)
    left: list[str] = []
    with stream.learners.calling_home(ONE, lambda: left.append("one")):
        assert left == ["one"]


def test_a_refusal_is_reported_for_good(stream: Stream) -> None:
    stream.state()
    stream.assign(ONE)
    assert stream.learners.next() == ONE
    assert stream.learners.note_refusal()
    assert list(stream.state().refused_by) == ["one"]
    stream.clock.now = 1e9
    assert stream.learners._refused == {"one": math.inf}


def test_a_learner_that_cannot_be_reached_is_reported_for_a_while(stream: Stream) -> None:
    stream.state()
    stream.assign(ONE)
    for _ in range(broker.NUM_TRIES):
        assert stream.learners.next() == ONE
        stream.learners.note_end(was_welcomed=False)
    assert list(stream.state().refused_by) == ["one"]
    stream.clock.now += broker.UNREACHABLE_S + 1
    stream.learners._call.look()
    assert list(stream.state().refused_by) == []


def test_failures_before_a_welcome_do_not_count_after_it(stream: Stream) -> None:
    stream.state()
    stream.assign(ONE)
    for _ in range(broker.NUM_TRIES - 1):
        assert stream.learners.next() == ONE
        stream.learners.note_end(was_welcomed=False)
    stream.play_with(ONE)
    stream.learners.note_end(was_welcomed=True)
    assert stream.state().playing == ""
    assert stream.learners.next() == ONE
    stream.learners.note_end(was_welcomed=False)
    assert stream.learners._refused == {}


def test_without_a_broker_the_known_learners_are_dialed_in_turn(stream: Stream, calls: ScriptedCalls) -> None:
    stream.state()
    stream.play_with(ONE)
    stream.learners.note_end(was_welcomed=True)
    assert stream.state().playing == ""
    stream.play_with(TWO)
    stream.learners.note_end(was_welcomed=True)
    assert stream.state().playing == ""
    stream.call.end()
    stream.call = calls.next_call()  # it does not answer
    dialed = []
    for _ in range(3):
        dialed.append(stream.learners.next())
        stream.learners.note_end(was_welcomed=False)
    assert dialed == [TWO, ONE, TWO]
    assert list(stream.learners._refused) == []


@pytest.mark.parametrize(("has_answered", "reason"), [(True, "has no run"), (False, "does not answer")])
def test_a_wait_for_a_learner_has_an_end(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, has_answered: bool, reason: str
) -> None:
    monkeypatch.setattr(broker, "WAIT_S", 0.0)
    if has_answered:
        stream.assign(None)
    with pytest.raises(UnassignedError, match=reason) as error:
        stream.learners.next()
    assert error.value.is_idle == has_answered


def test_a_shutdown_ends_a_wait_for_a_learner(stream: Stream) -> None:
    stream.shutdown.request()
    with pytest.raises(UnassignedError):
        stream.learners.next()


@pytest.mark.parametrize(
    "message",
    [
        b"\xff" * 20,
        pb.Assignment(learner_id="x", address="no port").SerializeToString(),
        pb.Assignment(learner_id="x", address="").SerializeToString(),
        pb.Assignment(learner_id="x", address="h:99999").SerializeToString(),
    ],
)
def test_a_bad_message_of_the_broker_changes_nothing(stream: Stream, message: bytes) -> None:
    stream.state()
    stream.call.send(message)
    stream.assign(ONE)
    assert stream.learners.next() == ONE


def test_no_more_refusals_are_reported_than_the_contract_allows(stream: Stream) -> None:
    stream.state()
    for index in range(broker.MAX_REFUSALS + 3):
        learner = Learner("127.0.0.1:4441", run="small", instance_id=f"learner-{index:03d}")
        stream.assign(learner)
        assert stream.learners.next() == learner
        stream.learners.note_refusal()
        names = list(stream.state().refused_by)
    assert len(names) == broker.MAX_REFUSALS and names[-1] == f"learner-{broker.MAX_REFUSALS + 2:03d}"
