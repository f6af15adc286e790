"""A stream to the learner under test; the suite plays the env-server."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Protocol

import grpc
from google.protobuf.message import DecodeError

from kubebeast_conformance.contract.courses import Values, followed, observations
from kubebeast_conformance.contract.learner_stream import LearnerStream
from kubebeast_conformance.contract.rows import Row
from kubebeast_conformance.contract.violation import ViolationError, require
from kubebeast_conformance.wire.inbox import Ended, Inbox, SilentError
from kubebeast_protos.v1 import actor_pool_pb2 as pb


class Call(Protocol):
    """A call in either direction."""

    @property
    def inbox(self) -> Inbox: ...

    def send(self, message: bytes) -> None: ...

    def half_close(self) -> None:
        """Closes the suite's side."""

    def cancel(self) -> None:
        """Breaks the call."""

    def close(self) -> None:
        """Breaks the call if it is still open."""


class FleetStream:
    """A stream that checks all received messages. A context manager, which breaks the call if it is still open.

    Its waits raise ViolationError after patience_s seconds.
    """

    def __init__(self, call: Call, hello: pb.Hello, patience_s: float, seed: int = 0) -> None:
        self.call = call
        self.hello = hello
        self.welcome = pb.Welcome()
        self._patience_s = patience_s
        self._checker = LearnerStream(hello)
        self._values = Values(seed)
        self._course: Iterator[pb.ActRequest] | None = None
        self._traced = False
        self._unanswered: pb.Observations | None = None

    def __enter__(self) -> "FleetStream":
        return self

    def __exit__(self, *error: object) -> None:
        self.call.close()

    def join(self, rule: str = "W1") -> pb.Welcome:
        """Sends the Hello and waits for the Welcome. Without one, `rule` is broken."""
        self.send(pb.ActRequest(hello=self.hello))
        return self.be_welcomed(rule)

    def be_welcomed(self, rule: str) -> pb.Welcome:
        self.welcome = self._checker.open(self.call.inbox.get_due_message(self._patience_s, rule, "no Welcome"))
        return self.welcome

    def try_to_join(self) -> Ended | None:
        """Sends the Hello; returns the end of a refused stream, or None after a Welcome."""
        self.send(pb.ActRequest(hello=self.hello))
        item = self.call.inbox.get_due(self._patience_s, "W1", "no Welcome")
        if isinstance(item, Ended):
            return item
        self.welcome = self._checker.open(item)
        return None

    def next_observations(self) -> pb.ActRequest:
        """Returns the next Observations of a random sequence of rows that both minor versions have."""
        if self._course is None:
            choices = (int(self._values.random.integers(256)) for _ in itertools.count())
            self._course = followed(self._agreed(), choices, self._values)
        request = next(self._course)
        request.observations.env_us = 7 if self._traced else 0
        return request

    def rows(self, step: int, row: Row) -> pb.ActRequest:
        """Returns Observations of this step with the same row for all environments."""
        rows = [row] * self.hello.num_envs
        message = observations(self._agreed(), step, rows, self._values)
        message.env_us = 0
        return pb.ActRequest(observations=message)

    def step(self, rule: str = "A1") -> pb.Actions:
        """Sends the next Observations and waits for the Actions. Without any, `rule` is broken."""
        return self.exchange(self.next_observations(), rule)

    def exchange(self, request: pb.ActRequest, rule: str = "A1") -> pb.Actions:
        """Sends these Observations and waits for the Actions."""
        self.send(request)
        return self.actions(request.observations, rule)

    def actions(self, answered: pb.Observations, rule: str = "A1") -> pb.Actions:
        """Waits for the Actions that answer the Observations."""
        actions = self._checker.check(self.call.inbox.get_due_message(self._patience_s, rule, "no Actions"), answered)
        self._traced = actions.traced
        return actions

    def play(self, num_steps: int, rule: str = "A1") -> None:
        for _ in range(num_steps):
            self.step(rule)

    def advance(self, timeout_s: float) -> bool:
        """Sends Observations, or continues to wait for the last ones. Returns True if Actions came in time; False after
        timeout_s, and at the end of the stream.
        """
        if self._unanswered is None:
            request = self.next_observations()
            self.send(request)
            self._unanswered = request.observations
        try:
            item = self.call.inbox.peek(timeout_s)
        except SilentError:
            return False
        if isinstance(item, Ended):
            return False
        self.actions(self._unanswered)
        self._unanswered = None
        return True

    def is_answered(self, num_messages: int) -> bool:
        """Returns True if num_messages messages come before the end. Without message and end, S3 is broken."""
        neither = "neither a message nor the end"
        come = (self.call.inbox.get_due(self._patience_s, "S3", neither) for _ in range(num_messages))
        return not any(isinstance(item, Ended) for item in come)

    def expect_silence(self, seconds: float) -> None:
        """Blocks for this time. A message or the end breaks A1."""
        with contextlib.suppress(SilentError):
            item = self.call.inbox.get(seconds)
            raise ViolationError("A1", "", f"{item!s} came while Observations are due")

    def leave(self) -> None:
        """Sends a Bye and checks the end."""
        self.send(pb.ActRequest(bye=pb.Bye(reason=pb.Bye.REASON_SHUTDOWN)))
        self.call.half_close()
        self.expect_status("E8", grpc.StatusCode.OK, "after a Bye")

    def send(self, request: pb.ActRequest | bytes) -> None:
        self.call.send(request if isinstance(request, bytes) else request.SerializeToString())

    def expect_status(
        self, rule: str, code: grpc.StatusCode, because: str, *, names: str = "", within_s: float | None = None
    ) -> None:
        """Waits for the end. Another status, no end, and a text without `names` break `rule`."""
        while True:
            try:
                item = self.call.inbox.get(within_s or self._patience_s)
            except SilentError as error:
                raise ViolationError(rule, "", f"the stream goes on {because}: {error}") from error
            if isinstance(item, Ended):
                break
            if _is("welcome", item):
                raise ViolationError(rule, "welcome", f"welcomed {because}", item)
        require(item.code is code, rule, "", f"{item} {because}, not {code.name}")
        require(names in item.details, rule, "", f"the text {item.details!r} does not name {names} {because}")

    def expect_end(self, rule: str, code: grpc.StatusCode, because: str, *, within_s: float | None = None) -> None:
        """Waits for the End of a learner that has dialed. Another code breaks `rule`; another end or none breaks E9."""
        item = self._after_actions(because, within_s)
        if isinstance(item, Ended):
            raise ViolationError("E9", "", f"{item} {because}, and no End before it")
        end = pb.ActResponse.FromString(item).end
        require(end.code == code.value[0], rule, "end.code", f"{end.code} {because}, not that of {code.name}")
        require(end.detail != "", "E9", "end.detail", "empty")
        self._expect_closed("after its End")

    def expect_closed_side(self, because: str) -> None:
        """Waits until a learner that has dialed closes its side. An End, or a side that stays open, breaks E9."""
        item = self._after_actions(because)
        if not isinstance(item, Ended):
            raise ViolationError("E9", "end", f"an End {because}, although the status would be OK", item)
        require(item.code is grpc.StatusCode.OK, "E8", "", f"{item} {because}, not a side that is closed")

    def _after_actions(self, because: str, within_s: float | None = None) -> bytes | Ended:
        """Returns the first End message, or the end."""
        while True:
            item = self.call.inbox.get_due(within_s or self._patience_s, "E9", f"the stream goes on {because}")
            if isinstance(item, Ended) or _is("end", item):
                return item

    def _expect_closed(self, because: str) -> None:
        item = self.call.inbox.get_due(self._patience_s, "E9", f"its side stays open {because}")
        if not isinstance(item, Ended):
            raise ViolationError("E9", "", f"another message {because}", item)
        require(item.code is grpc.StatusCode.OK, "E9", "", f"{item} {because}, not a side that is closed")

    def _agreed(self) -> pb.Hello:
        """Returns the Hello with the minor version and compression of the Welcome."""
        agreed = pb.Hello()
        agreed.CopyFrom(self.hello)
        agreed.protocol_minor = min(self.hello.protocol_minor, self.welcome.protocol_minor)
        del agreed.offered_compression[:]
        agreed.offered_compression.extend(self.welcome.compression)
        return agreed


def _is(payload: str, message: bytes) -> bool:
    try:
        return bool(pb.ActResponse.FromString(message).WhichOneof("payload") == payload)
    except DecodeError:
        return False
