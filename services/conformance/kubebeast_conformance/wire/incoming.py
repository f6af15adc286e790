"""Calls by a peer."""

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
    """A call by a peer that has dialed."""

    def __init__(self, context: grpc.ServicerContext, token_refusal: str | None) -> None:
        self.inbox = Inbox()
        self.token_refusal = token_refusal
        """Problem of the call's token; None if it is correct."""
        self._outbox: queue.SimpleQueue[bytes | Ended] = queue.SimpleQueue()
        self._context = context
        if not context.add_callback(lambda: self._outbox.put(Ended(None))):
            self._outbox.put(Ended(None))

    @property
    def is_active(self) -> bool:
        """False after the end of the call or of its connection."""
        return self._context.is_active()

    def send(self, message: bytes) -> None:
        self._outbox.put(message)

    def finish(self, code: grpc.StatusCode, details: str = "") -> None:
        """Ends the call with this status."""
        self._outbox.put(Ended(code, details))

    def half_close(self) -> None:
        """Closes the suite's side, which ends the call."""
        self.finish(grpc.StatusCode.OK)

    def cancel(self) -> None:
        """Breaks the call."""
        self._context.cancel()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Breaks the call if it is still open."""
        if self.is_active:
            self.cancel()

    def read(self, requests: Iterator[bytes]) -> None:
        """Fills the inbox until the peer has closed its side or broken the call."""
        try:
            for message in requests:
                self.inbox.put(message)
        except Exception as error:  # grpcio raises a plain Exception if the call has ended
            self.inbox.put(Ended(None, str(error)))
        else:
            self.inbox.put(Ended(grpc.StatusCode.OK))

    def write(self) -> Iterator[bytes]:
        """Yields the messages to send until the end."""
        while not isinstance(item := self._outbox.get(), Ended):
            yield item
        if item.code not in (None, grpc.StatusCode.OK):
            self._context.abort(item.code, item.details)


class CallListener:
    """A server that accepts calls of one method. A context manager, which ends them all."""

    def __init__(self, method: str, address: str, access: Access) -> None:
        """Starts to listen; port 0 picks a free port. Raises TlsError, and RuntimeError if the address is in use."""
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
        """Breaks all connections and blocks until they are closed."""
        self._server.stop(None).wait()

    def next_call(self, timeout_s: float) -> IncomingCall:
        """Returns the next call that is still active. Blocks; raises SilentError after timeout_s seconds."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                call = self._calls.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                raise SilentError(timeout_s) from None
            if call.is_active:
                return call

    def drop_calls(self) -> None:
        """Ends calls that are waiting for `next_call`."""
        while not self._calls.empty():
            self._calls.get().finish(grpc.StatusCode.UNAVAILABLE)

    def _act(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        call = IncomingCall(context, refusal(self._access.token_file, context.invocation_metadata()))
        threading.Thread(target=call.read, args=(requests,), daemon=True).start()
        self._calls.put(call)
        return call.write()
