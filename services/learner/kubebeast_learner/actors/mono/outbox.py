"""Messages to another process, sent by a thread of their own."""

import contextlib
import os
import socket
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue

_END = object()


class Outbox:
    """Messages that a thread sends through a pipe, in order. Only this thread waits while the other process does not
    read, as one that waits itself until this process reads. For one thread.
    """

    def __init__(self, connection: Connection) -> None:
        """connection: a duplex pipe that only the outbox writes to."""
        self._connection = connection
        self._messages: SimpleQueue[object] = SimpleQueue()
        self._thread = threading.Thread(target=self._send_all, name="outbox", daemon=True)
        self._thread.start()

    def put(self, message: object) -> None:
        """Sends a message after those before. Messages to a process that has ended are dropped."""
        self._messages.put(message)

    def close(self) -> None:
        """Ends the pipe for both sides, and the thread, even within a message. Idempotent."""
        if self._thread.is_alive():
            self._messages.put(_END)
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as pipe:
                pipe.shutdown(socket.SHUT_RDWR)  # unlike a close, this ends a write that waits
            self._thread.join()

    def _send_all(self) -> None:
        with contextlib.suppress(OSError):
            while (message := self._messages.get()) is not _END:
                self._connection.send(message)
