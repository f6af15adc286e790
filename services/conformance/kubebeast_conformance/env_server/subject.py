"""The env-server under test: its streams and its process."""

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
    """Options of a run of the suite against an env-server."""

    listen: str = ""
    """Address that the env-server dials."""
    dial: str = ""
    """Address that the env-server listens on instead; "" if it dials."""
    command: Sequence[str] = ()
    """Command that starts the env-server; without it some checks are skipped."""
    access: Access = field(default_factory=Access)
    num_steps: int = 200
    """Number of steps of the checks that play."""
    patience_s: float = 30.0
    """Maximum wait in seconds for a required message."""
    quiet_s: float = 1.0
    """Wait in seconds for a forbidden message."""
    long_waits: bool = False
    """True to include checks that take a minute each."""
    show_output: bool = False
    """True to show the output of the command."""


class DialedCall(OutgoingCall):
    """A call to an env-server that listens. The suite ends it like a learner that has dialed."""

    def finish(self, code: grpc.StatusCode, details: str = "") -> None:
        if code is not grpc.StatusCode.OK:
            end = pb.End(code=code.value[0], detail=details)
            self.send(pb.ActResponse(end=end).SerializeToString())
        self.half_close()


class EnvServer:
    """The env-server under test. A context manager, which ends the process and all calls."""

    def __init__(self, options: Options) -> None:
        """Listens, unless the env-server does. Raises TlsError, and RuntimeError if that fails."""
        self.options = options
        self._process: Process | None = None
        self._call: Call | None = None
        self._calls: list[OutgoingCall] = []
        self._listener = None if options.dial else CallListener(ACT, options.listen, options.access)
        self._address = options.dial if self._listener is None else self._listener.address
        self._dialed_address = options.dial
        self.ended_at = 0.0
        """Time at which the suite ended the newest stream, by time.monotonic."""

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
        """Address that the env-server dials, or listens on."""
        return self._address

    @property
    def is_dialed(self) -> bool:
        """True if the suite opens the connections."""
        return self._listener is None

    @property
    def process(self) -> Process:
        """The newest process. Raises SkippedError if the suite has not started one."""
        if self._process is None:
            raise SkippedError("takes a command that starts the env-server")
        return self._process

    def fresh_stream(self) -> PlayedStream:
        """Returns the first stream of a new process, or without a command the next stream, after its Hello."""
        self._forget_stream()
        if self.options.command:
            words = [word.replace("{address}", self.address) for word in self.options.command]
            self._process = Process(words, show_output=self.options.show_output)
        return self.next_stream("H1")

    def next_stream(self, rule: str) -> PlayedStream:
        """Returns the env-server's next stream, after its Hello. Without one, `rule` is broken."""
        stream = PlayedStream(self.next_call(rule), self.options.patience_s)
        stream.introduce()
        return stream

    def next_call(self, rule: str) -> Call:
        """Returns the env-server's next call, or an answered call to it. Without one, `rule` is broken."""
        try:
            self._call = self._dialed() if self._listener is None else self._accepted(self._listener)
        except SilentError as error:
            status = None if self._process is None else self._process.wait(0)
            ended = "" if status is None else f"; its process ended with status {status}"
            raise ViolationError(rule, "", f"no stream: {error}{ended}") from error
        return self._call

    def finish(
        self, stream: PlayedStream, code: grpc.StatusCode, details: str = "ended by the conformance suite"
    ) -> None:
        """Ends the stream like a learner."""
        stream.call.finish(code, details)
        self.ended_at = time.monotonic()

    def comes_again(self, within_s: float) -> bool:
        """Returns True if another stream opens within this time; False as soon as the process ends. Blocks."""
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
        """Returns the next call within this time. Raises SilentError."""
        self._call = self._dialed(seconds) if self._listener is None else self._listener.next_call(seconds)
        return self._call

    def restart_listener(self) -> None:
        """Breaks all connections and listens on the same address again."""
        if self._listener is None:
            raise SkippedError("the env-server listens")
        self._listener.close()
        self.ended_at = time.monotonic()
        self._listener = CallListener(ACT, self._address, self.options.access)

    @contextlib.contextmanager
    def watched(self) -> Iterator[Relay]:
        """Puts a relay between the suite and the env-server. Within the context, open only fresh streams.

        Raises SkippedError if a relay cannot read the traffic.
        """
        require_visible_pings(self.options.access, self._address)
        self._forget_stream()
        if self._listener is None:
            with Relay("127.0.0.1:0", self.options.dial, "target") as relay:
                self._dialed_address = relay.address
                try:
                    yield relay
                finally:
                    self._dialed_address = self.options.dial
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

    def _dialed(self, seconds: float | None = None) -> DialedCall:
        """Dials until the env-server answers. Raises SilentError."""
        timeout_s = self.options.patience_s if seconds is None else seconds
        deadline = time.monotonic() + timeout_s
        while True:
            call = DialedCall(PLAY, self._dialed_address, self.options.access)
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
        """Ends the newest stream, the process that the suite started, and waiting calls."""
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
