"""Messages of clients, checked: they come from other machines."""

import math
from typing import NamedTuple

from kubebeast_broker.assignment.shares import Claim
from kubebeast_common.access.addresses import MAX_PORT, is_host_port
from kubebeast_common.spec.limits import MAX_ID_CHARACTERS, MAX_RUN_BYTES
from kubebeast_common.text import printable
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import broker_pb2 as pb

MAX_WEIGHT = 1e6
MAX_REFUSALS = 64
"""Most learners in StreamState.refused_by."""
UNIX = "unix:"
MAX_SOCKET_BYTES = 107
"""Longest path of a unix socket: sun_path holds 108 bytes with the zero at its end (unix(7))."""


class MessageError(Exception):
    """A message that breaks a rule of broker.proto; the text names the field and its value."""


class LearnerName(NamedTuple):
    """Fixed fields of a LearnerState."""

    instance_id: str
    run_id: str
    address: str
    """"host:port" or "unix:/path"."""


class StreamName(NamedTuple):
    """Fixed fields of a StreamState."""

    instance_id: str
    env_id: str
    wanted_run: str


def read_learner(state: pb.LearnerState, host: str) -> tuple[LearnerName, Claim]:
    """Returns the name and the claim of a learner that dials from `host`. Raises MessageError."""
    _require_version(state.protocol_version)
    _require_id("instance_id", state.instance_id)
    _require(state.run_id != "", "run_id", state.run_id, "must not be empty")
    _require_run("run_id", state.run_id)
    address = f"{host}{state.address}" if state.address.startswith(":") else state.address
    _require(_is_address(address), "address", state.address, 'must be "host:port", ":port" or "unix:/path"')
    is_weight = math.isfinite(state.weight) and 0 < state.weight <= MAX_WEIGHT
    _require(is_weight, "weight", state.weight, f"must be above 0, at most {MAX_WEIGHT:g}")
    return LearnerName(state.instance_id, state.run_id, address), Claim(state.weight, state.usable_streams)


def read_stream(state: pb.StreamState) -> StreamName:
    """Returns the name of a stream. Raises MessageError, also for its other fields."""
    _require_version(state.protocol_version)
    _require_id("instance_id", state.instance_id)
    _require_id("env_id", state.env_id)
    _require_run("wanted_run", state.wanted_run)
    if state.playing:
        _require_id("playing", state.playing)
    number = len(state.refused_by)
    _require(number <= MAX_REFUSALS, "refused_by", f"{number} learners", f"must be at most {MAX_REFUSALS}")
    for name in state.refused_by:
        _require_id("refused_by", name)
    return StreamName(state.instance_id, state.env_id, state.wanted_run)


def _require_version(version: int) -> None:
    _require(version == PROTOCOL_VERSION, "protocol_version", version, f"this broker has {PROTOCOL_VERSION}")


def _require_id(name: str, text: str) -> None:
    is_id = 1 <= len(text) <= MAX_ID_CHARACTERS and text.isascii() and text.isprintable()
    _require(is_id, name, text, f"must be 1 to {MAX_ID_CHARACTERS} printable ASCII characters")


def _require_run(name: str, text: str) -> None:
    is_name = len(text.encode()) <= MAX_RUN_BYTES and text.isprintable()
    _require(is_name, name, text, f"must be printable and of at most {MAX_RUN_BYTES} bytes")


def _is_address(text: str) -> bool:
    path = text.removeprefix(UNIX)
    if path != text:
        return path.startswith("/") and len(path.encode()) <= MAX_SOCKET_BYTES and path.isprintable()
    return len(text) <= MAX_ID_CHARACTERS and is_host_port(text) and 1 <= int(text.rpartition(":")[2]) <= MAX_PORT


def _require(condition: bool, name: str, value: object, reason: str) -> None:
    if not condition:
        shown = repr(printable(value, 100)) if isinstance(value, str) else f"{value}"
        raise MessageError(f"{name} = {shown}: {reason}")
