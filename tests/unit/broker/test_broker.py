"""The broker keeps registrations, and sends each stream its learner."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from kubebeast_broker.assignment.shares import Claim
from kubebeast_broker.broker import AWAY_S, SETTLE_S, Broker, FullError, LearnerCall, StreamCall
from kubebeast_broker.messages import LearnerName, StreamName

DEADLINE_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Peers:
    """A running broker, its clock and its clients."""

    def __init__(self, max_learners: int = 4, max_streams: int = 16) -> None:
        self.clock = Clock()
        self.broker = Broker(max_learners, max_streams, clock=self.clock)
        self.ended: list[str] = []
        """Clients with calls that the broker has ended."""

    def learner(self, name: str, port: int = 1, weight: float = 1.0) -> LearnerCall:
        whole = LearnerName(name, f"run {name}", f"host:{port}")
        return self.broker.register_learner(whole, Claim(weight, 0), lambda: self.ended.append(name))

    def stream(self, name: str, playing: str = "") -> StreamCall:
        call = self.broker.register_stream(StreamName(name, "env", ""), lambda: self.ended.append(name))
        self.broker.update_stream(call, playing, ())
        return call


def with_loop(test: Callable[[Peers], Coroutine[None, None, None]]) -> None:
    """Runs a test beside the loop of its broker."""

    async def run() -> None:
        peers = Peers()
        async with asyncio.timeout(DEADLINE_S):
            assigning = asyncio.ensure_future(peers.broker.run())
            await test(peers)
            assigning.cancel()

    asyncio.run(run())


async def learner_of(call: StreamCall) -> str:
    """Returns the name of the next learner in the mail of a stream."""
    while (name := await call.learners.take()) is None:
        pass
    return name.instance_id


def test_a_stream_is_sent_the_learner_that_needs_it() -> None:
    async def test(peers: Peers) -> None:
        stream = peers.stream("s")
        assert await stream.learners.take() is None
        learner = peers.learner("a")
        assert await learner_of(stream) == "a"
        while await learner.shares.take() != 1:
            pass

    with_loop(test)


def test_a_learner_that_has_ended_frees_its_streams() -> None:
    async def test(peers: Peers) -> None:
        stream, learner = peers.stream("s"), peers.learner("a", 1)
        assert await learner_of(stream) == "a"
        peers.learner("b", 2)
        peers.broker.end_learner(learner, is_planned=True)
        assert await learner_of(stream) == "b"

    with_loop(test)


def test_a_learner_that_is_lost_keeps_streams_that_play_with_it_for_a_moment() -> None:
    async def test(peers: Peers) -> None:
        peers.clock.now_s += SETTLE_S
        stream, learner = peers.stream("s"), peers.learner("a", 1)
        assert await learner_of(stream) == "a"
        peers.broker.update_stream(stream, "a", ())
        peers.learner("b", 2)
        peers.broker.end_learner(learner, is_planned=False)
        other = peers.stream("t")
        assert await learner_of(other) == "b"
        assert stream.learner == "a"
        peers.clock.now_s += AWAY_S
        assert await learner_of(stream) == "b"
        assert peers.broker.num_lost == 1

    with_loop(test)


def test_streams_wait_for_the_learners_they_play_with_after_a_restart() -> None:
    async def test(peers: Peers) -> None:
        kept, lost = peers.stream("s", playing="a"), peers.stream("t", playing="gone")
        peers.learner("b", 2)
        assert await learner_of(peers.stream("free")) == "b"
        assert (kept.learner, lost.learner) == ("", "")
        peers.learner("a", 1)
        assert await learner_of(kept) == "a"
        peers.clock.now_s += SETTLE_S
        assert await learner_of(lost) in ("a", "b")

    with_loop(test)


def test_a_client_that_dials_again_takes_the_place_of_its_former_call() -> None:
    async def test(peers: Peers) -> None:
        former_learner, former_stream = peers.learner("a"), peers.stream("s")
        peers.learner("a")
        stream = peers.stream("s", playing="a")
        assert peers.ended == ["a", "s"]
        peers.broker.end_learner(former_learner, is_planned=True)
        peers.broker.end_stream(former_stream)
        assert await learner_of(stream) == "a"

    with_loop(test)


def test_a_new_learner_at_an_address_takes_the_place_of_the_former_one() -> None:
    async def test(peers: Peers) -> None:
        peers.learner("a", 1)
        peers.learner("b", 1)
        assert list(peers.broker.learners) == ["b"]
        assert peers.ended == ["a"]

    with_loop(test)


def test_the_numbers_of_learners_and_streams_are_limited() -> None:
    peers = Peers(max_learners=1, max_streams=1)
    peers.learner("a", 1)
    peers.stream("s")

    with pytest.raises(FullError, match="max_learners = 1"):
        peers.learner("b", 2)
    with pytest.raises(FullError, match="max_streams = 1"):
        peers.stream("t")


def test_a_loop_that_stands_still_is_a_problem() -> None:
    peers = Peers()
    assert peers.broker.problem() == ""
    peers.clock.now_s += 40.0
    assert peers.broker.problem() == "no assignment for 40 s"
