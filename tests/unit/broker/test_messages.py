"""Messages of clients are checked before anything uses them."""

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubebeast_broker.assignment.shares import Claim
from kubebeast_broker.messages import LearnerName, MessageError, StreamName, read_learner, read_stream
from kubebeast_protos.v1 import broker_pb2 as pb

HOST = "192.0.2.1"
LEARNER: dict[str, Any] = {
    "protocol_version": 1,
    "instance_id": "0123",
    "run_id": "café",
    "address": "learner.example:4431",
    "weight": 2.0,
    "usable_streams": 5,
}
STREAM: dict[str, Any] = {"protocol_version": 1, "instance_id": "abc-0", "env_id": "CartPole-v1", "wanted_run": "run"}


def test_a_learner_is_read() -> None:
    name = LearnerName("0123", "café", "learner.example:4431")
    assert read_learner(pb.LearnerState(**LEARNER), HOST) == (name, Claim(2.0, 5))


@pytest.mark.parametrize(
    ("address", "host", "expected"),
    [
        (":4431", HOST, f"{HOST}:4431"),
        (":4431", "[2001:db8::1]", "[2001:db8::1]:4431"),
        ("unix:/run/learner.sock", HOST, "unix:/run/learner.sock"),
    ],
)
def test_an_address_without_a_host_is_that_of_the_peer(address: str, host: str, expected: str) -> None:
    assert read_learner(pb.LearnerState(**{**LEARNER, "address": address}), host)[0].address == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("protocol_version", 2),
        ("instance_id", ""),
        ("instance_id", "é"),
        ("instance_id", "x" * 254),
        ("run_id", ""),
        ("run_id", "two\nlines"),
        ("run_id", "x" * 254),
        ("address", ""),
        ("address", "host"),
        ("address", "host:0"),
        ("address", ":99999"),
        ("address", "host:1,other:2"),
        ("address", "unix:relative"),
        ("address", "unix:/" + "x" * 107),
        ("weight", 0.0),
        ("weight", -1.0),
        ("weight", math.nan),
        ("weight", math.inf),
        ("weight", 2e6),
    ],
)
def test_a_bad_field_of_a_learner_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(MessageError, match=f"^{name} = "):
        read_learner(pb.LearnerState(**{**LEARNER, name: value}), HOST)


def test_a_stream_is_read() -> None:
    assert read_stream(pb.StreamState(**STREAM)) == StreamName("abc-0", "CartPole-v1", "run")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("protocol_version", 0),
        ("instance_id", "tab\t"),
        ("env_id", ""),
        ("wanted_run", "x" * 254),
        ("playing", "é"),
        ("refused_by", [""]),
        ("refused_by", ["x"] * 65),
    ],
)
def test_a_bad_field_of_a_stream_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(MessageError, match=f"^{name} = "):
        read_stream(pb.StreamState(**{**STREAM, name: value}))


@given(st.builds(pb.LearnerState, instance_id=st.text(), run_id=st.text(), address=st.text(), weight=st.floats()))
def test_no_text_or_number_gets_past_the_checks(state: pb.LearnerState) -> None:
    state.protocol_version = 1
    with contextlib.suppress(MessageError):
        name, claim = read_learner(state, HOST)
        assert name.run_id.isprintable()
        assert claim.weight > 0
