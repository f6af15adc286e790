"""Load for a server: streams that repeat recorded messages and ignore the contents of the replies."""

import queue
import threading
from pathlib import Path

import grpc

from benchmarks import messages
from benchmarks.cell import Cell

METHOD = "/kubebeast.v1.ActorPool/Act"


def run(cell: Cell, streams: range, address: str, recording: Path) -> None:
    """Drives the given streams of the cell until one of them ends, and then raises RuntimeError."""
    bodies = messages.observation_bodies(cell, recording)
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    for stream in streams:
        threading.Thread(target=_drive, args=(cell, stream, address, bodies, ended), daemon=True).start()
    raise RuntimeError(f"stream {ended.get()} of {cell} ended")


def _drive(cell: Cell, stream: int, address: str, bodies: list[bytes], ended: queue.SimpleQueue[int]) -> None:
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    channel = _open_channel(cell, address)
    act = channel.stream_stream(METHOD, request_serializer=bytes, response_deserializer=bytes)
    replies = act(iter(requests.get, None))
    requests.put(messages.hello(cell, stream))
    try:
        for step, _ in enumerate(replies):
            body = bodies[1 + (step - 1) % (len(bodies) - 1)] if step else bodies[0]
            requests.put(messages.with_step(body, step))
    finally:
        ended.put(stream)


def _open_channel(cell: Cell, address: str) -> grpc.Channel:
    # A separate connection for every stream, like env-servers in separate pods.
    options = [("grpc.use_local_subchannel_pool", 1)]
    if cell.tls is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(cell.tls.ca.read_bytes()), options)
