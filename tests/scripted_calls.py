"""The other side of a call in both directions, on a port of this machine: a test decides what it answers, and when."""

import contextlib
import queue
from collections.abc import Iterator
from concurrent import futures

import grpc

WAIT_S = 60.0


class ScriptedCall:
    """One call. Its waits block for WAIT_S at most, and else raise queue.Empty."""

    def __init__(self, metadata: dict[str, str]) -> None:
        self.metadata = metadata
        self._received: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes | grpc.StatusCode | None] = queue.SimpleQueue()

    def next_message(self) -> bytes | None:
        """Waits for a message; None is the end of the other side."""
        return self._received.get(timeout=WAIT_S)

    def send(self, message: bytes) -> None:
        self._answers.put(message)

    def end(self, status: grpc.StatusCode | None = None) -> None:
        """Ends the call, with an error if `status` is given."""
        self._answers.put(status)

    def read(self, requests: Iterator[bytes]) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):  # the call has ended meanwhile
            for request in requests:
                self._received.put(request)
        self._received.put(None)

    def answers(self) -> Iterator[bytes | grpc.StatusCode]:
        while (answer := self._answers.get(timeout=WAIT_S)) is not None:
            yield answer


class ScriptedCalls:
    """The calls of one method of a server, in their order."""

    def __init__(self) -> None:
        self.address = ""
        self._calls: queue.SimpleQueue[ScriptedCall] = queue.SimpleQueue()
        self._readers = futures.ThreadPoolExecutor(16)

    def next_call(self) -> ScriptedCall:
        """Waits for a call; raises queue.Empty after WAIT_S."""
        return self._calls.get(timeout=WAIT_S)

    def serve(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        call = ScriptedCall({key: str(value) for key, value in context.invocation_metadata()})
        self._readers.submit(call.read, requests)
        self._calls.put(call)
        for answer in call.answers():
            if isinstance(answer, grpc.StatusCode):
                context.abort(answer, "as the test wants")
            yield answer


@contextlib.contextmanager
def scripted_calls(method: str) -> Iterator[ScriptedCalls]:
    """Serves the method "/package.Service/Method" until the end of the context."""
    calls = ScriptedCalls()
    _, service, name = method.split("/")
    handlers = {name: grpc.stream_stream_rpc_method_handler(calls.serve)}
    handler = grpc.method_handlers_generic_handler(service, handlers)
    server = grpc.server(futures.ThreadPoolExecutor(16), handlers=[handler])
    calls.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield calls
    finally:
        server.stop(0).wait()
