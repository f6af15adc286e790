"""Lower bound on the cost of a step of one environment: a constant message each way over TCP, without encoding."""

import contextlib
import socket
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.cell import Cell, Snapshot

REQUEST_BYTES = {"raw": 7_081, "lz4": 280}
"""Size of the message of one environment's step with frames of 84 x 84, by codec."""
REPLY_BYTES = 64


def serve(cell: Cell, channel: Connection) -> None:
    """Serves like native_server.serve, but for one client; every message counts as delivered."""
    num_received = [0]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer, args=(listener, REQUEST_BYTES[cell.codec], num_received), daemon=True).start()
        channel.send(f"127.0.0.1:{listener.getsockname()[1]}")
        try:
            while channel.recv():
                (steps,) = num_received
                received = steps * REQUEST_BYTES[cell.codec]
                channel.send(Snapshot.take(steps=steps, bytes_received=received, steps_delivered=steps))
        except EOFError:
            pass


def run(cell: Cell, streams: range, address: str, recording: Path) -> None:
    """Sends and receives in turn until the server is gone, and then raises EOFError."""
    host, _, port = address.rpartition(":")
    request = bytes(REQUEST_BYTES[cell.codec])
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            connection.sendall(request)
            if not connection.recv(REPLY_BYTES):
                raise EOFError("the server is gone")


def _answer(listener: socket.socket, request_bytes: int, num_received: list[int]) -> None:
    """Answers one client; the only writer of `num_received`, which holds one number."""
    connection, _ = listener.accept()
    with connection, contextlib.suppress(ConnectionError):  # the client is terminated while it waits
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reply, request = bytes(REPLY_BYTES), bytearray(request_bytes)
        while connection.recv_into(request, flags=socket.MSG_WAITALL):
            num_received[0] += 1
            connection.sendall(reply)
