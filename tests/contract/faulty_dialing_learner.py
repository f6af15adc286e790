"""A learner that dials and keeps the contract except for one rule."""

import queue
import threading
from collections.abc import Iterator
from typing import Any, NoReturn, Self

import grpc

from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.contract.faulty_learner import FaultyLearner

Code = grpc.StatusCode
REDIAL_S = 0.2


class EndError(Exception):
    """Raised to end the stream with a status code."""

    def __init__(self, code: grpc.StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Context:
    """A call of a listening learner; its abort raises EndError."""

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise EndError(code, details)


class FaultyDialingLearner:
    """A learner that dials again and again between enter and exit."""

    def __init__(self, fault: str, address: str) -> None:
        self._fault = fault
        self._address = address
        self._learner = FaultyLearner(fault)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(REDIAL_S):
            self._play()

    def _play(self) -> None:
        outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        received: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with grpc.insecure_channel(self._address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            play = channel.stream_stream("/kubebeast.v1.EnvServer/Play", None, None)
            call: Any = play(iter(outbox.get, None))
            reader = threading.Thread(target=_read, args=(call, received), daemon=True)
            reader.start()
            for response in self._responses(received):
                outbox.put(response.SerializeToString())
            if self._fault != "E9 open":
                outbox.put(None)
            while reader.is_alive() and not self._stopping.is_set():
                reader.join(REDIAL_S)
            outbox.put(None)

    def _responses(self, received: "queue.SimpleQueue[bytes | None]") -> Iterator[pb.ActResponse]:
        context: Any = Context()
        try:
            yield from self._learner.talk(received, context)
            if self._fault != "E9 after a bye":
                return
            code, detail = Code.OK, "farewell"
        except ViolationError as error:
            code, detail = Code.FAILED_PRECONDITION if error.rule.id == "H2" else Code.INVALID_ARGUMENT, str(error)
        except EndError as error:
            code, detail = error.code, str(error)
        except queue.Empty:
            code, detail = Code.DEADLINE_EXCEEDED, "nothing came in time"
        if self._fault != "E9":
            yield pb.ActResponse(end=pb.End(code=code.value[0], detail="" if self._fault == "E9 silent" else detail))
        if self._fault == "E9 more":
            yield pb.ActResponse(actions=pb.Actions())


def _read(call: Iterator[bytes], received: "queue.SimpleQueue[bytes | None]") -> None:
    try:
        for request in call:
            received.put(request)
    except grpc.RpcError:
        pass
    received.put(None)
