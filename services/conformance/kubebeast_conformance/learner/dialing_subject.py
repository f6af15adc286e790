"""A learner under test that dials."""

import grpc

from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.learner.stream import FleetStream
from kubebeast_conformance.learner.subject import START_S, Options
from kubebeast_conformance.process import Process
from kubebeast_conformance.wire.inbox import SilentError
from kubebeast_conformance.wire.incoming import CallListener
from kubebeast_conformance.wire.methods import PLAY
from kubebeast_protos.v1 import actor_pool_pb2 as pb


class DialingLearner:
    """A learner that dials; the suite plays an env-server that listens. A context manager, which breaks its calls."""

    def __init__(self, options: Options) -> None:
        """Starts to listen on options.address. Raises TlsError, and RuntimeError if that fails."""
        self.options = options
        self._listener = CallListener(PLAY, options.address, options.access)
        self._process: Process | None = None
        self._patience_s = options.patience_s

    def __enter__(self) -> "DialingLearner":
        """Starts the command, if there is one. Raises OSError if that fails."""
        if self.options.command:
            words = [word.replace("{address}", self._listener.address) for word in self.options.command]
            self._process = Process(words, show_output=self.options.show_output)
            self._patience_s = START_S
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
        self._listener.close()

    @property
    def address(self) -> str:
        """Address that the learner must dial."""
        return self._listener.address

    def stream(self) -> FleetStream:
        """Returns the next call, before its Hello. Without a call C1 is broken, with a wrong token C4."""
        try:
            call = self._listener.next_call(self._patience_s)
        except SilentError as error:
            raise ViolationError("C1", "", f"no call: {error}") from error
        self._patience_s = self.options.patience_s
        if call.token_refusal is not None:
            call.finish(grpc.StatusCode.UNAUTHENTICATED, call.token_refusal)
            raise ViolationError("C4", "", call.token_refusal)
        hello = pb.Hello()
        hello.CopyFrom(self.options.hello)
        hello.instance_id = "conformance"
        return FleetStream(call, hello, self.options.patience_s)

    def joined(self) -> FleetStream:
        """Returns a stream after its Welcome."""
        stream = self.stream()
        try:
            stream.join()
        except ViolationError:
            stream.call.close()
            raise
        return stream
