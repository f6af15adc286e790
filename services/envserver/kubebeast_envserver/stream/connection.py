"""A stream of the wire contract, independent of its direction and its transport, and the meaning of its end."""

from typing import Protocol

import grpc
from google.protobuf.message import DecodeError

from kubebeast_common.text import printable
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MAX_RECEIVED_BYTES = 64 << 20
"""Maximum size of a message."""
CONNECT_TIMEOUT_MS = 5_000
"""Maximum time of one attempt to connect, including TLS: an address that swallows packets must not cost 20 s."""

FINAL_CODES = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""Codes of a learner that will not accept this env-server on any attempt."""

RUN_FINISHED = grpc.StatusCode.OUT_OF_RANGE
"""Code of a run that is over. The learner accepts no streams, but another run may follow at the same address."""

_CODES = {code.value[0]: code for code in grpc.StatusCode if code is not grpc.StatusCode.OK}


class DisconnectedError(Exception):
    """Unexpected end of the stream; another stream may succeed."""

    def __init__(self, reason: str, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        super().__init__(reason)
        self.code = code


class RefusedError(Exception):
    """Refusal of this env-server by the learner; another stream cannot succeed."""

    def __init__(self, reason: str, code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION) -> None:
        super().__init__(reason)
        self.code = code


class Stream(Protocol):
    """An open stream of either direction and any transport. Its messages are bytes: ActRequest and ActResponse."""

    def send(self, request: bytes, *, is_last: bool = False) -> None:
        """Sends to the learner. Reentrant, never blocks; a request after the last one is never sent."""
        ...

    def receive(self) -> bytes | None:
        """Blocks for the next response; returns None if the learner ended the stream. For one thread.

        Raises DisconnectedError or RefusedError if it ended with an error.
        """
        ...

    def cancel(self) -> object:
        """Ends the stream at once and wakes the receiver; from any thread."""
        ...


def parse_response(message: bytes) -> pb.ActResponse:
    """Parses a response. Raises ProtocolError, also for a message that gRPC compressed: it is not inflated."""
    try:
        return pb.ActResponse.FromString(message)
    except DecodeError as error:
        raise ProtocolError("ActResponse: malformed, or compressed by gRPC") from error


def status_error(code: int, details: str) -> DisconnectedError | RefusedError:
    """Returns the error for the end of a stream from its details and the number of its status, which is not OK."""
    status = _CODES.get(code, grpc.StatusCode.UNKNOWN)
    text = f"{status.name}: {printable(details, 1000)}"
    return RefusedError(text, status) if status in FINAL_CODES else DisconnectedError(text, status)


def end_error(end: pb.End) -> DisconnectedError | RefusedError:
    """Returns the error for an End. Raises ProtocolError if its code is no error."""
    if end.code not in _CODES:
        raise ProtocolError(f"End.code is {end.code}, which is no error code of gRPC")
    return status_error(end.code, end.detail)


def code_name(error: Exception) -> str:
    """Returns one of GRPC_CODES: the status that ended or prevented a stream; unavailable for files that cannot be
    used.
    """
    code = grpc.StatusCode.UNAVAILABLE
    if isinstance(error, (DisconnectedError, RefusedError)):
        code = error.code
    elif isinstance(error, ProtocolError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    return code.name.lower()
