"""The env-server under test: how its streams are got, and what becomes of its process."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import grpc

from kubebeast_conformance.check import SkippedError
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.env_server.stream import Call, PlayedStream
from kubebeast_conformance.keepalive import require_visible_pings
from kubebeast_conformance.process import Process
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.inbox import Ended, SilentError
from kubebeast_conformance.wire.incoming import CallListener, IncomingCall
from kubebeast_conformance.wire.methods import ACT, PLAY
from kubebeast_conformance.wire.outgoing import OutgoingCall
from kubebeast_conformance.wire.relay import Relay
from kubebeast_protos.v1 import actor_pool_pb2 as pb

_RETRY_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Of a run of the suite against an env-server."""

    listen: str = ""
    """Where it dials."""
    dial: str = ""
    """Where it listens, if it does."""
    command: Sequence[str] = ()
    """That starts it; without it some checks are skipped."""
    access: Access = field(default_factory=Access)
    num_steps: int = 200
    """Of the checks that play."""
    patience_s: float = 30.0
    """How long the suite waits for anything that must come."""
    quiet_s: float = 1.0
    """How long it listens for what must not come."""
    long_waits: bool = False
    """Whether checks that take a minute each are wanted."""
    show_output: bool = False
    """Of the command."""


class DialledCall(OutgoingCall):
    """Of an env-server that listens: the suite ends it as a learner that has dialled."""

    def finish(self, code: grpc.StatusCode, details: str = "") -> None:
        if code is not grpc.StatusCode.OK:
            end = pb.End(code=code.value[0], detail=details)
            self.send(pb.ActResponse(end=end).SerializeToString())
        self.half_close()


class EnvServer:
    """A context manager, which ends the process and all calls."""

    def __init__(self, options: Options) -> None:
        """Raises TlsError, and RuntimeError where options.listen cannot be listened on."""
        self.options = options
        self._process: Process | None = None
        self._call: Call | None = None
        self._calls: list[OutgoingCall] = []
        self._listener = None if options.dial else CallListener(ACT, options.listen, options.access)
        self._address = options.dial if self._listener is None else self._listener.address
        self._dialled_address = options.dial
        self.ended_at = 0.0
        """When the suite ended the newest stream, by time.monotonic."""

    def __enter__(self) -> "EnvServer":
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
        self._end_calls()
        if self._listener is not None:
            self._listener.close()

    @property
    def address(self) -> str:
        """Where the env-server dials, or listens."""
        return self._address

    @property
    def is_dialled(self) -> bool:
        """Whether the suite opens the connections."""
        return self._listener is None

    @property
    def process(self) -> Process:
        """The newest one. Raises SkippedError where the suite has not started it."""
        if self._process is None:
            raise SkippedError("takes a command that starts the env-server")
        return self._process

    def fresh_stream(self) -> PlayedStream:
        """The first stream of a new process; without a command the next one of the old. Its Hello has come."""
        self._forget_stream()
        if self.options.command:
            words = [word.replace("{address}", self.address) for word in self.options.command]
            self._process = Process(words, show_output=self.options.show_output)
        return self.next_stream("H1")

    def next_stream(self, rule: str) -> PlayedStream:
        """The env-server's next stream. The rule is broken where none comes. Its Hello has come."""
        stream = PlayedStream(self.next_call(rule), self.options.patience_s)
        stream.introduce()
        return stream

    def next_call(self, rule: str) -> Call:
        """Its next call, or an answered one to it."""
        try:
            self._call = self._dialled() if self._listener is None else self._accepted(self._listener)
        except SilentError as error:
            status = None if self._process is None else self._process.wait(0)
            ended = "" if status is None else f"; its process ended with status {status}"
            raise ViolationError(rule, "", f"no stream: {error}{ended}") from error
        return self._call

    def finish(self, stream: PlayedStream, code: grpc.StatusCode, details: str = "said the conformance suite") -> None:
        """Ends the stream as a learner."""
        stream.call.finish(code, details)
        self.ended_at = time.monotonic()

    def comes_again(self, within_s: float) -> bool:
        """Whether it opens another stream within that time; at once False where its process ends. Blocks."""
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            try:
                self.next_call_within(min(left, _RETRY_S))
                return True
            except SilentError:
                if self._process is not None and self._process.wait(0) is not None:
                    return False
        return False

    def next_call_within(self, seconds: float) -> Call:
        """Raises SilentError."""
        self._call = self._dialled(seconds) if self._listener is None else self._listener.next_call(seconds)
        return self._call

    def restart_listener(self) -> None:
        """Breaks every connection and listens on the same address again."""
        if self._listener is None:
            raise SkippedError("the env-server listens")
        self._listener.close()
        self.ended_at = time.monotonic()
        self._listener = CallListener(ACT, self._address, self.options.access)

    @contextlib.contextmanager
    def watched(self) -> Iterator[Relay]:
        """A relay between the suite and the env-server; streams are to be opened within, and are fresh ones.

        Raises SkippedError where it could read nothing.
        """
        require_visible_pings(self.options.access, self._address)
        self._forget_stream()
        if self._listener is None:
            with Relay("127.0.0.1:0", self.options.dial, "target") as relay:
                self._dialled_address = relay.address
                try:
                    yield relay
                finally:
                    self._dialled_address = self.options.dial
                    self._forget_stream()
            return
        self._listener.close()
        self._listener = CallListener(ACT, "127.0.0.1:0", self.options.access)
        try:
            with Relay(self._address, self._listener.address, "who dials") as relay:
                yield relay
        finally:
            self._listener.close()
            self._listener = CallListener(ACT, self._address, self.options.access)

    def _accepted(self, listener: CallListener) -> IncomingCall:
        call = listener.next_call(self.options.patience_s)
        if call.token_refusal is not None:
            raise ViolationError("C4", "", call.token_refusal)
        return call

    def _dialled(self, seconds: float | None = None) -> DialledCall:
        """Dials until somebody answers."""
        timeout_s = self.options.patience_s if seconds is None else seconds
        deadline = time.monotonic() + timeout_s
        while True:
            call = DialledCall(PLAY, self._dialled_address, self.options.access)
            try:
                item = call.inbox.peek(max(deadline - time.monotonic(), 0))
            except SilentError:
                item = Ended(None)
            if not isinstance(item, Ended):
                self._calls.append(call)
                return call
            call.__exit__()
            if time.monotonic() >= deadline:
                raise SilentError(timeout_s)
            time.sleep(_RETRY_S)

    def _forget_stream(self) -> None:
        """Ends the newest stream, and those that have come since."""
        if self._call is not None:
            self._call.finish(grpc.StatusCode.UNAVAILABLE, "the conformance suite has another check")
            self._call = None
        if self.options.command and self._process is not None:
            self._process.kill()
        self._end_calls()
        if self._listener is not None:
            self._listener.drop_calls()

    def _end_calls(self) -> None:
        for call in self._calls:
            call.__exit__()
        self._calls.clear()
