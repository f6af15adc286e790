"""A learner under test that listens: its streams and its process."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import grpc

from kubebeast_conformance.check import SkippedError
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.keepalive import require_visible_pings
from kubebeast_conformance.learner.stream import FleetStream
from kubebeast_conformance.process import Process
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.inbox import Ended, SilentError
from kubebeast_conformance.wire.methods import ACT
from kubebeast_conformance.wire.outgoing import OutgoingCall
from kubebeast_conformance.wire.relay import Relay
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

DEFAULT_HELLO = pb.Hello(
    protocol_version=PROTOCOL_VERSION,
    protocol_minor=PROTOCOL_MINOR,
    env_server_id="conformance",
    env_id="Conformance-v0",
    num_envs=2,
    observation=[
        pb.LeafSpec(path="image", dtype=pb.DTYPE_UINT8, shape=[10, 10], frame_stack=3),
        pb.LeafSpec(path="speed", dtype=pb.DTYPE_FLOAT32, shape=[4]),
    ],
    action=[
        pb.LeafSpec(path="move", dtype=pb.DTYPE_INT64, num_categories=3),
        pb.LeafSpec(path="turn", dtype=pb.DTYPE_FLOAT32, shape=[2], bounded=True),
    ],
    offered_compression=[pb.COMPRESSION_LZ4],
)
_RETRY_S = 0.2
START_S = 120.0
"""Time limit in seconds for the start of a learner."""
END_S = 60.0
"""Time limit in seconds for its end after SIGTERM."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Options of a run of the suite against a learner."""

    address: str
    """Address that the learner listens on; if the learner dials, address that the suite listens on."""
    command: Sequence[str] = ()
    """Command that starts the learner; without it a check is skipped."""
    access: Access = field(default_factory=Access)
    hello: pb.Hello = field(default_factory=lambda: DEFAULT_HELLO)
    """Hello of the fleet; each stream has its own instance_id."""
    num_steps: int = 200
    """Number of steps of the checks that play."""
    patience_s: float = 30.0
    """Maximum wait in seconds for a required message."""
    quiet_s: float = 1.0
    """Wait in seconds for a forbidden message."""
    handshake_timeout_s: float = 10.0
    """Setting of the learner."""
    step_timeout_s: float = 60.0
    """Setting of the learner."""
    max_message_mib: int = 64
    """Setting of the learner."""
    max_streams: int = 0
    """Setting of the learner; 0: unknown."""
    total_steps: int = 0
    """Setting of the learner; 0: unknown, or too many to play."""
    long_waits: bool = False
    """True to include checks that take a minute each."""
    floods: bool = False
    """True to include floods."""
    show_output: bool = False
    """True to show the output of the command."""


class Learner:
    """The learner under test. A context manager, which ends the process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._address = options.address
        self._count = itertools.count()
        self._process: Process | None = None

    def __enter__(self) -> "Learner":
        """Starts the command, if there is one, and blocks until the address is listened on. Raises OSError."""
        if self.options.command:
            self.revive()
        else:
            self._wait_until_it_listens(self.options.patience_s)
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()

    @property
    def process(self) -> Process:
        """The process. Raises SkippedError if the suite has not started one."""
        if self._process is None:
            raise SkippedError("takes a command that starts the learner")
        return self._process

    def revive(self) -> None:
        """Starts the command if its process does not run. Blocks until the address is listened on."""
        if not self.options.command or (self._process is not None and self._process.wait(0) is None):
            return
        words = [word.replace("{address}", self._address) for word in self.options.command]
        self._process = Process(words, show_output=self.options.show_output)
        self._wait_until_it_listens(START_S)

    @contextlib.contextmanager
    def watched(self) -> Iterator[Relay]:
        """Puts a relay between the suite and the learner, for streams opened within the context.

        Raises SkippedError if a relay cannot read the traffic.
        """
        require_visible_pings(self.options.access, self._address)
        with Relay("127.0.0.1:0", self.options.address, "target") as relay:
            self._address = relay.address
            try:
                yield relay
            finally:
                self._address = self.options.address

    def stream(
        self,
        change: Callable[[pb.Hello], object] = lambda hello: None,
        *,
        with_token: bool = True,
        compression: grpc.Compression | None = None,
    ) -> FleetStream:
        """Returns a new stream on its own connection, before its Hello, which is the fleet's after `change`.

        Raises TlsError and TokenFileError.
        """
        number = next(self._count)
        hello = pb.Hello()
        hello.CopyFrom(self.options.hello)
        hello.instance_id = f"conformance-{number}"
        change(hello)
        options = self.options
        call = OutgoingCall(ACT, self._address, options.access, with_token=with_token, compression=compression)
        return FleetStream(call, hello, options.patience_s, seed=number)

    def joined(self, change: Callable[[pb.Hello], object] = lambda hello: None) -> FleetStream:
        """A stream that has been welcomed."""
        stream = self.stream(change)
        try:
            stream.join()
        except ViolationError:
            stream.call.close()
            raise
        return stream

    def _wait_until_it_listens(self, timeout_s: float) -> None:
        """Blocks until a learner answers at the address, for at most timeout_s seconds."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with self.stream() as stream:
                try:
                    item = stream.call.inbox.get(_RETRY_S)
                except SilentError:
                    return
                if isinstance(item, Ended) and item.code is not grpc.StatusCode.UNAVAILABLE:
                    return
            time.sleep(_RETRY_S)
