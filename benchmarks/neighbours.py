"""Misbehaving clients of a learner, as bytes on a TCP connection, at almost no cost to the sender.

HTTP/2 frames are written directly, so that a message can be sent a byte at a time or without waiting for replies, and
so that one core can open thousands of connections per second.
"""

import asyncio
import contextlib
import os
import struct
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, get_args

from benchmarks import messages
from benchmarks.cell import Cell
from kubebeast_conformance.wire import http2
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Kind = Literal["idle", "slow", "flooding", "lying"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_WINDOW_BYTES = 65_535
"""Initial flow-control window: bytes that may be sent before a WINDOW_UPDATE (RFC 9113, section 6.9.2)."""
_BYTE_INTERVAL_S = 1.0


def run(
    kind: Kind, address: str, connections: int, cell: Cell, recording: Path, core: int, channel: Connection
) -> None:
    """Attacks the server of `cell` on a dedicated core until the other end of `channel` closes.

    Sends the number of ended connections at the beginning, and in reply to every message.
    """
    os.sched_setaffinity(0, {core})
    asyncio.run(_run(kind, address, connections, script(kind, cell, recording), channel))


async def _run(kind: Kind, address: str, connections: int, words: bytes, channel: Connection) -> None:
    num_ended = 0

    async def repeat(index: int) -> None:
        nonlocal num_ended
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                # Half of the idle connections send nothing at all.
                await attack(kind, address, None if kind == "idle" and index % 2 else words)
            num_ended += 1

    attacks = asyncio.gather(*(repeat(index) for index in range(connections)))
    with contextlib.suppress(EOFError):
        channel.send(num_ended)
        while await asyncio.to_thread(channel.recv):
            channel.send(num_ended)
    attacks.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await attacks


async def attack(kind: Kind, address: str, words: bytes | None) -> None:
    """Opens one connection and returns after the server has ended its stream.

    Args:
        words: Bytes of the call, from `script`; None to send nothing.

    Raises:
        OSError: If the connection ends.
        asyncio.IncompleteReadError: If the connection ends.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    end = asyncio.create_task(_read_to_end(reader, None if words is None else writer))
    try:
        if words is not None:
            pieces = [bytes([byte]) for byte in words] if kind == "slow" else [words]
            writer.write(http2.OPENING + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.head()))
            for piece in pieces:
                writer.write(piece)
                if kind == "slow" and (await asyncio.wait([end], timeout=_BYTE_INTERVAL_S))[0]:
                    break
        await end
    finally:
        end.cancel()
        writer.transport.abort()


async def _read_to_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None) -> None:
    """Reads the server's frames until one ends the stream, and acknowledges its settings if there is a writer.

    Raises IncompleteReadError if the connection ends before.
    """
    while True:
        length, kind, flags, _ = _parse(await reader.readexactly(9))
        await reader.readexactly(length)
        if kind == http2.SETTINGS and not flags & http2.ACK and writer is not None:
            writer.write(http2.frame(http2.SETTINGS, http2.ACK, 0))
        elif kind in (http2.RST_STREAM, http2.GOAWAY) or (kind == http2.HEADERS and flags & http2.END_STREAM):
            return


def script(kind: Kind, cell: Cell, recording: Path) -> bytes:
    """Returns the bytes after the opening: a valid Hello, and the steps that the kind sends without waiting."""
    hello = messages.hello(cell, 0)
    bodies = messages.observation_bodies(cell, recording)
    steps: list[bytes] = []
    if kind == "flooding":
        size = len(hello)
        for step, body in enumerate(bodies):
            message = messages.with_step(body, step)
            size += len(message) + 32
            if size > _WINDOW_BYTES:
                break
            steps.append(message)
    elif kind == "lying":
        lie = pb.Observations.FromString(bodies[0])
        lie.rewards = lie.rewards[:-4]
        steps.append(pb.ActRequest(observations=lie).SerializeToString())
    return b"".join(_message(each) for each in (hello, *steps))


def _message(data: bytes) -> bytes:
    """Returns a message of the call in DATA frames."""
    prefixed = http2.message(data)
    pieces: Sequence[bytes] = [
        prefixed[start : start + http2.MAX_FRAME_BYTES] for start in range(0, len(prefixed), http2.MAX_FRAME_BYTES)
    ]
    return b"".join(http2.frame(http2.DATA, 0, 1, piece) for piece in pieces)


def _parse(header: bytes) -> tuple[int, int, int, int]:
    """Returns payload length, type, flags and stream of a frame."""
    kind, flags, stream = struct.unpack(">BBI", header[3:])
    return int.from_bytes(header[:3], "big"), kind, flags, stream
