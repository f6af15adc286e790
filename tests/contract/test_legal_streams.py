"""The real pool accepts every stream that the contract allows, and its books are right."""

from concurrent.futures import ThreadPoolExecutor

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from kubebeast_conformance.contract.env_server_stream import Books, check_stream
from tests.contract.sequences import Stream, streams
from tests.integration.playing_pool import PlayingPool, env_spec
from tests.integration.raw_stream import End, converse

REPEATABLE = settings(deadline=None, derandomize=True, max_examples=100)


def sent(stream: Stream, end: End, patient: bool) -> tuple[tuple[grpc.StatusCode, str], dict[str, int]]:
    """Returns the status that the pool ends the stream with, and its books afterwards."""
    hello = stream.hello
    spec = env_spec(hello.env_id, hello.observation, hello.action)
    with PlayingPool(spec) as pool, ThreadPoolExecutor(1) as peer:
        status = peer.submit(converse, pool.address, stream.requests, end, patient=patient)
        pool.play_until(lambda: status.done() and not pool.stat("streams"))
        return status.result(), pool.native.stats()


@REPEATABLE
@given(streams(), st.sampled_from(["half-close", "cancel"]), st.booleans())
def test_the_pool_accepts_it_and_counts_it(stream: Stream, disconnection: End, patient: bool) -> None:
    end: End = disconnection if stream.bye is None else "wait"
    status, stats = sent(stream, end, patient)
    assert stats["streams_ended_invalid"] == stats["streams_rejected"] == 0, status
    assert stats["streams_ended_bye"] == (stream.bye is not None)
    if end != "cancel" or patient:  # else the last step may be lost
        counted = Books(
            rows=stats["rows_received"],
            env_steps=stats["steps_sampled"],
            interruptions=stats["env_interruptions"],
            episodes=stats["episodes"],
        )
        assert counted == check_stream(stream.requests)
        assert stats["streams_accepted"] == 1
    dropped = sum(stats[f"steps_dropped_{reason}"] for reason in ("partial", "stale", "close"))
    assert stats["steps_sampled"] == stats["steps_delivered"] + dropped + stats["steps_in_flight"]
