"""Calls that a peer makes."""

import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc

from kubebeast_common.access.token_file import refusal
from kubebeast_conformance.wire.access import OPTIONS, Access
from kubebeast_conformance.wire.inbox import Ended, Inbox, SilentError

_MAX_CALLS = 64


class IncomingCall:
    """Of a peer that has dialled in."""

    def __init__(self, context: grpc.ServicerContext, token_refusal: str | None) -> None:
        self.inbox = Inbox()
        self.token_refusal = token_refusal
        """What is wrong with its token; None where nothing is."""
        self._outbox: queue.SimpleQueue[bytes | Ended] = queue.SimpleQueue()
        self._context = context
        if not context.add_callback(lambda: self._outbox.put(Ended(None))):
            self._outbox.put(Ended(None))

    @property
    def is_active(self) -> bool:
        """False once the peer, or its connection, has gone."""
        return self._context.is_active()

    def send(self, message: bytes) -> None:
        self._outbox.put(message)

    def finish(self, code: grpc.StatusCode, details: str = "") -> None:
        """Ends the call with that status."""
        self._outbox.put(Ended(code, details))

    def half_close(self) -> None:
        """Closes the suite's side, which ends the call."""
        self.finish(grpc.StatusCode.OK)

    def cancel(self) -> None:
        """Breaks the call."""
        self._context.cancel()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Breaks what is left of it."""
        if self.is_active:
            self.cancel()

    def read(self, requests: Iterator[bytes]) -> None:
        """Fills the inbox until the peer has closed its side or broken the call."""
        try:
            for message in requests:
                self.inbox.put(message)
        except Exception as error:  # grpcio raises a plain one where the call has ended
            self.inbox.put(Ended(None, str(error)))
        else:
            self.inbox.put(Ended(grpc.StatusCode.OK))

    def write(self) -> Iterator[bytes]:
        """What is sent, until the end."""
        while not isinstance(item := self._outbox.get(), Ended):
            yield item
        if item.code not in (None, grpc.StatusCode.OK):
            self._context.abort(item.code, item.details)


class CallListener:
    """Takes calls of one method. A context manager, which ends them all."""

    def __init__(self, method: str, address: str, access: Access) -> None:
        """Listens at once; port 0 picks a free one. Raises TlsError, and RuntimeError for an address in use."""
        self._access = access
        self._calls: queue.SimpleQueue[IncomingCall] = queue.SimpleQueue()
        service, name = method.strip("/").split("/")
        handler = grpc.method_handlers_generic_handler(
            service, {name: grpc.stream_stream_rpc_method_handler(self._act)}
        )
        self._server = grpc.server(ThreadPoolExecutor(_MAX_CALLS), [handler], options=OPTIONS)
        port = access.listen(self._server, address)
        self.address = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
        self._server.start()

    def __enter__(self) -> "CallListener":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Breaks every connection. Blocks until they are."""
        self._server.stop(None).wait()

    def next_call(self, timeout_s: float) -> IncomingCall:
        """Of those that are not broken yet. Blocks; SilentError when there is none within timeout_s seconds."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                call = self._calls.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                raise SilentError(timeout_s) from None
            if call.is_active:
                return call

    def drop_calls(self) -> None:
        """Ends those that nobody has taken."""
        while not self._calls.empty():
            self._calls.get().finish(grpc.StatusCode.UNAVAILABLE)

    def _act(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        call = IncomingCall(context, refusal(self._access.token_file, context.invocation_metadata()))
        threading.Thread(target=call.read, args=(requests,), daemon=True).start()
        self._calls.put(call)
        return call.write()
