"""One stream: the handshake, then observations out and actions in until either side ends it."""

import contextlib
import logging
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import grpc

from kubebeast_envserver.codec import (
    ProtocolError,
    check_welcome,
    decode_actions,
    encode_observations,
    leaf_spec,
    offer_compression,
)
from kubebeast_envserver.connection import DisconnectedError, stream_error
from kubebeast_envserver.rows import EnvironmentFailure, HostedEnv
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1.actor_pool_pb2_grpc import ActorPoolStub

MAX_DETAIL_CHARS = 200
DRAIN_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class Call(Protocol):
    """What grpc's stream-stream calls are."""

    def __iter__(self) -> Iterator[pb.ActResponse]: ...
    def __next__(self) -> pb.ActResponse: ...
    def cancel(self) -> bool: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Who the stream says it is (the fields of Hello)."""

    env_server_id: str
    instance_id: str
    env_id: str


class Session:
    """A stream on an open channel. `run` belongs to one thread; `shut_down` may come from any, or a signal handler."""

    def __init__(
        self, channel: grpc.Channel, env: HostedEnv, identity: Identity, *, lz4: bool, welcome_timeout_s: float
    ) -> None:
        self._env = env
        self._identity = identity
        self._offered = [offer_compression(leaf, lz4) for leaf in env.spec_observation]
        self._welcome_timeout_s = welcome_timeout_s
        # Its put is reentrant, which shut_down needs. None ends the requests; what follows it is never sent.
        self._requests: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
        self._stub = ActorPoolStub(channel)
        self._ending = False
        self.welcomed = False

    def run(self) -> None:
        """Steps the environments until `shut_down`, then returns; a reset starts new episodes.

        Raises DisconnectedError, RefusedError, ProtocolError, or EnvironmentFailure after telling the learner.
        """
        call = cast("Call", self._stub.Act(iter(self._requests.get, None)))
        try:
            self._shake_hands_and_play(call)
        except EnvironmentFailure as failure:
            self._end(pb.Bye(detail=str(failure)[:MAX_DETAIL_CHARS]))
            self._drain(call)
            raise
        except grpc.RpcError as error:
            if not self._ending:
                raise stream_error(error) from error
        finally:
            call.cancel()
            self._requests.put(None)

    def shut_down(self) -> None:
        """Says Bye and half-closes; `run` returns once the learner has ended the stream."""
        self._end(pb.Bye(reason="REASON_SHUTDOWN"))

    def _end(self, bye: pb.Bye) -> None:
        self._ending = True
        self._requests.put(pb.ActRequest(bye=bye))
        self._requests.put(None)

    def _shake_hands_and_play(self, call: Call) -> None:
        self._requests.put(pb.ActRequest(hello=self._hello()))
        with cancelled_after(self._welcome_timeout_s, call):
            response = self._receive(call)
        if response is not None and not self._ending:
            if not response.HasField("welcome"):
                raise ProtocolError("the first response is not a Welcome")
            compression = check_welcome(response.welcome, self._offered)
            self.welcomed = True
            logger.info(
                "joined run %s with %d x %s", response.welcome.run_id, self._env.num_envs, self._identity.env_id
            )
            self._play(call, compression)
        self._drain(call)

    def _play(self, call: Call, compression: list[pb.Compression]) -> None:
        env, step = self._env, 0
        rows = env.reset()
        while not self._ending:
            self._requests.put(encode_observations(step, rows, env.spec_observation, compression))
            response = self._receive(call)
            if response is None or self._ending:
                return
            if not response.HasField("actions"):
                raise ProtocolError("expected Actions")
            rows = env.step(decode_actions(response.actions, step, env.spec_action, env.num_envs))
            step += 1

    def _receive(self, call: Call) -> pb.ActResponse | None:
        """Blocks for the next response; None when the learner ended the stream after a Bye."""
        response = next(call, None)
        if response is None and not self._ending:
            raise DisconnectedError("the learner ended the stream")
        return response

    def _drain(self, call: Call) -> None:
        """Waits for the learner to end the stream after a Bye, so that the Bye arrives."""
        with cancelled_after(DRAIN_TIMEOUT_S, call), contextlib.suppress(grpc.RpcError):
            for _ in call:
                pass

    def _hello(self) -> pb.Hello:
        return pb.Hello(
            protocol_version=PROTOCOL_VERSION,
            env_server_id=self._identity.env_server_id,
            instance_id=self._identity.instance_id,
            env_id=self._identity.env_id,
            num_envs=self._env.num_envs,
            observation=[leaf_spec(leaf) for leaf in self._env.spec_observation],
            action=[leaf_spec(leaf) for leaf in self._env.spec_action],
            offered_compression=self._offered,
        )


@contextlib.contextmanager
def cancelled_after(timeout_s: float, call: Call) -> Iterator[None]:
    """Cancels the call unless the block ends within timeout_s seconds: iterating a call takes no timeout."""
    timer = threading.Timer(timeout_s, call.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
