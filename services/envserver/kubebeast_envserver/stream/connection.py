"""A stream of the wire contract, whoever dialed it and whatever carries it, and what its end means."""

from typing import Protocol

import grpc
from google.protobuf.message import DecodeError

from kubebeast_common.text import printable
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MAX_RECEIVED_BYTES = 64 << 20
"""Of one message."""
CONNECT_TIMEOUT_MS = 5_000
"""Longest that one try to connect may take, TLS included: an address that swallows packets must not cost 20 s."""

FINAL_CODES = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""The learner will not take this env-server however often they connect."""

RUN_FINISHED = grpc.StatusCode.OUT_OF_RANGE
"""The learner's run is over. It takes no streams, but another run may follow at the same address."""

_CODES = {code.value[0]: code for code in grpc.StatusCode if code is not grpc.StatusCode.OK}


class DisconnectedError(Exception):
    """The stream ended without being asked to; another one may go better."""

    def __init__(self, reason: str, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        super().__init__(reason)
        self.code = code


class RefusedError(Exception):
    """The learner refuses this env-server; another stream cannot go better."""

    def __init__(self, reason: str, code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION) -> None:
        super().__init__(reason)
        self.code = code


class Stream(Protocol):
    """An open stream, whoever dialed it and whatever carries it. Its messages are bytes: ActRequest and ActResponse."""

    def send(self, request: bytes, *, is_last: bool = False) -> None:
        """To the learner. Reentrant, never blocks; what follows the last request is never sent."""
        ...

    def receive(self) -> bytes | None:
        """Blocks for the next response; None where the learner ended the stream. For one thread.

        Raises DisconnectedError or RefusedError where it ended with an error.
        """
        ...

    def cancel(self) -> object:
        """Ends the stream at once and wakes who receives; from any thread."""
        ...


def parse_response(message: bytes) -> pb.ActResponse:
    """What gRPC compressed is no message: it is not inflated. Raises ProtocolError."""
    try:
        return pb.ActResponse.FromString(message)
    except DecodeError as error:
        raise ProtocolError("ActResponse: malformed, or compressed by gRPC") from error


def status_error(code: int, details: str) -> DisconnectedError | RefusedError:
    """What the end of a stream means, from the number of its status, which is not that of OK, and its details."""
    status = _CODES.get(code, grpc.StatusCode.UNKNOWN)
    text = f"{status.name}: {printable(details, 1000)}"
    return RefusedError(text, status) if status in FINAL_CODES else DisconnectedError(text, status)


def end_error(end: pb.End) -> DisconnectedError | RefusedError:
    """What an End means. Raises ProtocolError where its code is no error."""
    if end.code not in _CODES:
        raise ProtocolError(f"End.code is {end.code}, which is no error code of gRPC")
    return status_error(end.code, end.detail)


def code_name(error: Exception) -> str:
    """One of GRPC_CODES: the status that ended or prevented a stream; of files that cannot be used, unavailable."""
    code = grpc.StatusCode.UNAVAILABLE
    if isinstance(error, (DisconnectedError, RefusedError)):
        code = error.code
    elif isinstance(error, ProtocolError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    return code.name.lower()
