"""Evidence of a broken rule is the bytes at the place of the field."""

import pytest

from kubebeast_conformance.contract.violation import Place, ViolationError
from kubebeast_conformance.wire.evidence import evidence
from kubebeast_conformance.wire.locate import Span, locate
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MESSAGE = pb.ActRequest(
    observations=pb.Observations(
        step=300,
        leaves=[b"abcd", b"efgh" * 50],
        rewards=b"\0\0\0\0\1\2\3\4",
        episodes=[pb.Episode(env=1, length=7), pb.Episode(env=2, episode_return=1.0)],
    )
)
DATA = MESSAGE.SerializeToString()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("observations.step", b"\xac\x02"),
        ("observations.leaves", b"abcd"),
        ("observations.leaves[1]", b"efgh" * 50),
        ("observations.rewards", b"\0\0\0\0\1\2\3\4"),
        ("observations.episodes[1].env", b"\2"),
        ("observations.episodes[1].episode_return", b"\0\0\x80\x3f"),
    ],
)
def test_a_field_is_found_in_the_bytes(path: str, value: bytes) -> None:
    span = locate(DATA, pb.ActRequest, path)
    assert span is not None
    assert DATA[span.start : span.end] == value


@pytest.mark.parametrize("path", ["hello", "observations.truncated", "observations.step.more", "nothing"])
def test_a_field_that_is_not_there_is_nowhere(path: str) -> None:
    assert locate(DATA, pb.ActRequest, path) is None


@pytest.mark.parametrize("length", range(len(DATA)))
def test_torn_bytes_are_looked_at_as_far_as_they_make_sense(length: int) -> None:
    assert locate(DATA[:length], pb.ActRequest, "observations.rewards") is None


def test_the_element_is_in_brackets() -> None:
    violation = ViolationError("O8", Place("observations.rewards", 1, 4), "wrong", DATA)
    text = evidence(violation, pb.ActRequest)
    span = locate(DATA, pb.ActRequest, "observations.rewards")
    assert span is not None
    assert text.startswith(
        f"bytes {span.start + 4} to {span.end - 1} of {len(DATA)}, observations.rewards[1] of a message"
    )
    assert "[01 02 03" in text and " 04]" in text


def test_of_many_bytes_the_first_are_shown() -> None:
    lines = evidence(ViolationError("O4", "observations.leaves[1]", "wrong", DATA), pb.ActRequest).splitlines()
    assert len(lines) == 6 and lines[-1] == "..."
    assert lines[1].endswith("[65  |........abcd...e|") and " 66 67 68 65" in lines[2]


def test_where_no_field_is_to_blame_the_message_is_shown_and_without_a_message_nothing() -> None:
    assert "[ff fe]" in evidence(ViolationError("S4", "", "garbage", b"\xff\xfe"), pb.ActRequest)
    assert evidence(ViolationError("E3", "", "no stream"), pb.ActRequest) == ""
    assert locate(b"\xff\xfe", pb.ActRequest, "") == Span(0, 2)
