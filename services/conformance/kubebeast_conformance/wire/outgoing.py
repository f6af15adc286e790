"""Calls by the suite."""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import grpc

from kubebeast_common.access.token_file import authorization
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.inbox import Ended, Inbox


class OutgoingCall:
    """A call on its own connection. A context manager, which cancels the call if it is still open."""

    def __init__(
        self,
        method: str,
        address: str,
        access: Access,
        *,
        with_token: bool = True,
        compression: grpc.Compression | None = None,
    ) -> None:
        """Starts the call. Never blocks; failure to connect appears as the end. Raises TlsError and TokenFileError."""
        self.inbox = Inbox()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        metadata = authorization(access.token_file) if with_token else ()
        self._channel = access.channel(address)
        act = self._channel.stream_stream(method, None, None)
        self._call: Any = act(iter(self._outbox.get, None), metadata=metadata, compression=compression)
        self._reader = threading.Thread(target=self._read, args=(self._call,), daemon=True)
        self._reader.start()

    def __enter__(self) -> "OutgoingCall":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the call if it is still open, and closes the connection."""
        self.cancel()
        self._channel.close()
        self._reader.join()

    def send(self, message: bytes) -> None:
        self._outbox.put(message)

    def half_close(self) -> None:
        """Closes the suite's side."""
        self._outbox.put(None)

    def cancel(self) -> None:
        """Breaks the call."""
        self._call.cancel()
        self._outbox.put(None)

    def _read(self, responses: Iterator[bytes]) -> None:
        try:
            for message in responses:
                self.inbox.put(message)
        except grpc.RpcError:
            pass
        self.inbox.put(Ended(self._call.code(), self._call.details() or ""))
