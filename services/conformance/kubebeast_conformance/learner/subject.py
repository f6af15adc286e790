"""The learner under test."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc

from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.learner.stream import FleetStream
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.inbox import Ended, SilentError
from kubebeast_conformance.wire.outgoing import OutgoingCall
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

ACT = "/kubebeast.v1.ActorPool/Act"
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Of a run of the suite against a learner."""

    address: str
    access: Access = field(default_factory=Access)
    hello: pb.Hello = field(default_factory=lambda: DEFAULT_HELLO)
    """Of the fleet; each stream has an instance_id of its own."""
    num_steps: int = 200
    """Of the checks that play."""
    patience_s: float = 30.0
    """How long the suite waits for anything that must come."""
    quiet_s: float = 1.0
    """How long it listens for what must not come."""
    handshake_timeout_s: float = 10.0
    """The learner's."""
    step_timeout_s: float = 60.0
    """The learner's."""
    max_message_mib: int = 64
    """The learner's."""
    max_streams: int = 0
    """The learner's; 0: not known."""


class Learner:
    """Opens streams."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._count = itertools.count()

    def stream(
        self,
        change: Callable[[pb.Hello], object] = lambda hello: None,
        *,
        with_token: bool = True,
        compression: grpc.Compression | None = None,
    ) -> FleetStream:
        """A new stream on a connection of its own; its Hello is the fleet's but for `change`, and not sent yet.

        Raises TlsError and TokenFileError.
        """
        number = next(self._count)
        hello = pb.Hello()
        hello.CopyFrom(self.options.hello)
        hello.instance_id = f"conformance-{number}"
        change(hello)
        options = self.options
        call = OutgoingCall(ACT, options.address, options.access, with_token=with_token, compression=compression)
        return FleetStream(call, hello, options.patience_s, seed=number)

    def joined(self, change: Callable[[pb.Hello], object] = lambda hello: None) -> FleetStream:
        """A stream that has been welcomed."""
        stream = self.stream(change)
        try:
            stream.join()
        except ViolationError:
            stream.call.__exit__()
            raise
        return stream

    def wait_until_it_listens(self) -> None:
        """Returns when somebody answers at the address, or patience_s seconds have passed."""
        deadline = time.monotonic() + self.options.patience_s
        while time.monotonic() < deadline:
            with self.stream() as stream:
                try:
                    item = stream.call.inbox.get(_RETRY_S)
                except SilentError:
                    return
                if isinstance(item, Ended) and item.code is not grpc.StatusCode.UNAVAILABLE:
                    return
            time.sleep(_RETRY_S)
