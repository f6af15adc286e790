"""A learner that keeps the contract except for one rule; it learns nothing.

`python -m tests.contract.faulty_learner FAULT ADDRESS` listens until SIGTERM.
"""

import contextlib
import itertools
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn, Self

import grpc
import numpy as np

from kubebeast_conformance.contract import answers
from kubebeast_conformance.contract.env_server_stream import EnvServerStream
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

HANDSHAKE_TIMEOUT_S, STEP_TIMEOUT_S = 3.0, 4.0
MAX_MESSAGE_MIB, MAX_STREAMS = 1, 4
TOKEN = "open-sesame"
TOTAL_STEPS = 3000
"""More steps than the other checks play."""
LOOK_S = 0.1
SETTLES_S = 2.0
"""Time in which streams receive the end of the run."""
Code = grpc.StatusCode


class FaultyLearner:
    """A learner that listens between enter and exit; with_token: requires TOKEN with every call."""

    def __init__(self, fault: str, *, with_token: bool = False, address: str = "127.0.0.1:0") -> None:
        self._fault = fault
        self._with_token = with_token and fault != "C4"
        self._spec: tuple[list[pb.LeafSpec], list[pb.LeafSpec]] | None = None
        self._everybody = threading.Lock()
        self._contexts: list[grpc.ServicerContext] = []
        self._numbers = itertools.count()
        self._num_steps = 0
        self._step_timeout_s = 60.0 if fault == "T5" else STEP_TIMEOUT_S
        self._is_ending = threading.Event()
        options = [
            ("grpc.max_receive_message_length", -1 if fault == "C3" else MAX_MESSAGE_MIB << 20),
            ("grpc.per_message_decompression", int(fault == "C2")),
            ("grpc.keepalive_time_ms", 2_000 if fault == "T5" else 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
        ]
        act = grpc.stream_stream_rpc_method_handler(self._act)
        handler = grpc.method_handlers_generic_handler("kubebeast.v1.ActorPool", {"Act": act})
        self._server = grpc.server(ThreadPoolExecutor(32), [handler], options=options)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(address)}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.stop(None).wait()

    def shut_down(self) -> None:
        """Ends every stream with UNAVAILABLE. Blocks until they have ended."""
        self._is_ending.set()
        self._server.stop(SETTLES_S).wait()

    def _act(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        if self._with_token and ("authorization", f"Bearer {TOKEN}") not in context.invocation_metadata():
            context.abort(Code.UNAUTHENTICATED, "the bearer token is missing")
        if sum(other.is_active() for other in self._contexts) >= MAX_STREAMS and self._fault != "S7":
            context.abort(Code.RESOURCE_EXHAUSTED, "there are so many streams already")
        if self._num_steps >= TOTAL_STEPS:
            context.abort(Code.INTERNAL if self._fault == "S6" else Code.OUT_OF_RANGE, "the run is finished")
        self._contexts.append(context)
        received: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(requests, received), daemon=True).start()
        try:
            for response in self.talk(received, context):
                yield response.SerializeToString()
        except ViolationError as error:
            self._refuse(context, error)
        except queue.Empty:
            context.abort(Code.DEADLINE_EXCEEDED, "nothing came in time")

    def _refuse(self, context: grpc.ServicerContext, error: ViolationError) -> NoReturn:
        if self._fault == "C5":
            for other in {*self._contexts} - {context}:
                other.cancel()  # type: ignore[no-untyped-call]
        code = Code.FAILED_PRECONDITION if error.rule.id == "H2" else Code.INVALID_ARGUMENT
        if self._fault in ("S1", "S2", "S3", "S4"):
            code = Code.INTERNAL
        context.abort(code, str(error))

    def talk(
        self, received: "queue.SimpleQueue[bytes | None]", context: grpc.ServicerContext
    ) -> Iterator[pb.ActResponse]:
        """Answers one stream, until the fleet has left. Raises ViolationError, and queue.Empty if a message is late."""
        stream = EnvServerStream()
        first = self._next(received, HANDSHAKE_TIMEOUT_S)
        if first is None:
            return
        hello = stream.open(first)
        self._check_spec(hello, context)
        if self._fault == "V3" and hello.protocol_minor > PROTOCOL_MINOR:
            context.abort(Code.FAILED_PRECONDITION, "too new")
        if self._fault == "V1" and b"new" in first:
            context.abort(Code.INVALID_ARGUMENT, "unknown field")
        welcome = answers.welcome(hello)
        stream.welcome(PROTOCOL_MINOR, list(welcome.compression))
        yield self._first_response(welcome, context)
        values = np.random.default_rng(0)
        slow = self._everybody if self._fault == "T4" else contextlib.nullcontext()
        with slow:
            while (data := self._next(received, self._step_timeout_s)) is not None:
                request = stream.check(data, traced=True)
                if request.HasField("bye"):
                    if self._fault == "E8":
                        context.abort(Code.ABORTED, "bye")
                    return
                if not received.empty() and self._fault != "S3 in a hurry":
                    raise ViolationError("O2", "observations", "before the Actions of the step before")
                self._num_steps += hello.num_envs
                if self._num_steps >= TOTAL_STEPS:
                    context.abort(Code.UNAVAILABLE, "the learner is shutting down")
                yield self._actions(hello, request.observations, values)
            if self._is_ending.is_set():
                context.abort(Code.ABORTED if self._fault == "S6 SIGTERM" else Code.UNAVAILABLE, "it is replaced")

    def _check_spec(self, hello: pb.Hello, context: grpc.ServicerContext) -> None:
        if hello.run not in ("", answers.RUN) and self._fault != "S1 run":
            context.abort(Code.FAILED_PRECONDITION, f"hello.run: {hello.run}, the learner trains {answers.RUN}")
        spec = (list(hello.observation), list(hello.action))
        self._spec = self._spec or spec
        if spec != self._spec:
            context.abort(Code.FAILED_PRECONDITION, "observation differs from the run's")

    def _first_response(self, welcome: pb.Welcome, context: grpc.ServicerContext) -> pb.ActResponse:
        match self._fault:
            case "W1":
                return pb.ActResponse(actions=pb.Actions())
            case "W2":
                welcome.protocol_version = PROTOCOL_VERSION + 1
            case "W3":
                welcome.compression.append(pb.COMPRESSION_NONE)
            case "W4":
                welcome.run_id = f"run-{next(self._numbers)}"
            case "W6":
                welcome.log_info.append("")
            case "W7":
                welcome.episode_options.add(env=0, options="[]")
        return pb.ActResponse(welcome=welcome)

    def _actions(self, hello: pb.Hello, observations: pb.Observations, values: np.random.Generator) -> pb.ActResponse:
        actions = answers.actions(hello, observations, values, traced=hello.protocol_minor >= 2 or self._fault == "V4")
        match self._fault:
            case "A1":
                actions.step += 1
            case "A2":
                actions.leaves[-1] += b"\0"
            case "A3":
                actions.leaves[0] = np.full(hello.num_envs, 3, "<i8").tobytes()
            case "A4":
                actions.leaves[1] = np.full(2 * hello.num_envs, np.nan, "<f4").tobytes()
            case "A5":
                actions.leaves[0] = np.full(hello.num_envs, 2, "<i8").tobytes()
            case "A7":
                actions.episode_options.add(env=0, options="{}")
        return pb.ActResponse(actions=actions)

    def _next(self, received: "queue.SimpleQueue[bytes | None]", timeout_s: float) -> bytes | None:
        """Returns the next message; None once the fleet has closed its side, or if the learner is to end."""
        deadline = time.monotonic() + (float("inf") if self._fault == "S5" else timeout_s)
        while not self._is_ending.is_set():
            with contextlib.suppress(queue.Empty):
                return received.get(timeout=LOOK_S)
            if time.monotonic() > deadline:
                raise queue.Empty
        return None


def _read(requests: Iterator[bytes], received: "queue.SimpleQueue[bytes | None]") -> None:
    with contextlib.suppress(Exception):  # grpcio raises a plain Exception if the call has ended
        for request in requests:
            received.put(request)
    received.put(None)


def main(fault: str, address: str) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with FaultyLearner(fault, address=address) as learner:
        stopping.wait()
        learner.shut_down()


if __name__ == "__main__":
    main(*sys.argv[1:])
