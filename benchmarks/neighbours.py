"""Clients that do a learner no good, as bytes on a TCP connection: each costs its sender next to nothing.

HTTP/2 frames are made by hand (RFC 9113, section 4), so that a message can be sent a byte at a time, or with no regard
for replies, and so that thousands of connections a second come from one core.
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
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Kind = Literal["idle", "slow", "flooding", "lying"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 0, 1, 3, 4, 7
_END_STREAM, _ACK, _END_HEADERS = 0x1, 0x1, 0x4
_MAX_FRAME_BYTES = 16_384
_WINDOW_BYTES = 65_535
"""What may be sent before the other side asks for more (RFC 9113, section 6.9.2)."""
_BYTE_INTERVAL_S = 1.0
_HEADER_FIELDS = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/kubebeast.v1.ActorPool/Act"),
    (":authority", "learner"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
)


def run(
    kind: Kind, address: str, connections: int, cell: Cell, recording: Path, core: int, channel: Connection
) -> None:
    """Attacks the server of `cell` from a core of its own until the other end of `channel` closes.

    Sends how many connections have ended so far when it begins, and for every message received.
    """
    os.sched_setaffinity(0, {core})
    asyncio.run(_run(kind, address, connections, script(kind, cell, recording), channel))


async def _run(kind: Kind, address: str, connections: int, words: bytes, channel: Connection) -> None:
    num_ended = 0

    async def repeat(index: int) -> None:
        nonlocal num_ended
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                # Half of the idle ones do not even speak HTTP/2.
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
    """One connection; returns when the server has ended its stream. words: of the call, from `script`; None: silence.

    OSError or IncompleteReadError when the connection ends.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    end = asyncio.create_task(_read_to_end(reader, None if words is None else writer))
    try:
        if words is not None:
            pieces = [bytes([byte]) for byte in words] if kind == "slow" else [words]
            writer.write(_opening())
            for piece in pieces:
                writer.write(piece)
                if kind == "slow" and (await asyncio.wait([end], timeout=_BYTE_INTERVAL_S))[0]:
                    break
        await end
    finally:
        end.cancel()
        writer.transport.abort()


async def _read_to_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None) -> None:
    """Reads the server's frames until one ends the stream, and answers them where there is a writer.

    IncompleteReadError when the connection ends before.
    """
    while True:
        length, kind, flags, _ = _parse(await reader.readexactly(9))
        await reader.readexactly(length)
        if kind == _SETTINGS and not flags & _ACK and writer is not None:
            writer.write(_frame(_SETTINGS, _ACK, 0))
        elif kind in (_RST_STREAM, _GOAWAY) or (kind == _HEADERS and flags & _END_STREAM):
            return


def script(kind: Kind, cell: Cell, recording: Path) -> bytes:
    """What follows the opening: a valid Hello, and the steps that the kind sends without waiting."""
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


def _opening() -> bytes:
    """A client's connection preface and the head of one call (RFC 9113, section 3.4; gRPC over HTTP/2)."""
    # Literal fields without indexing, not Huffman-coded (RFC 7541, section 6.2.2).
    fields = (part.encode() for name, value in _HEADER_FIELDS for part in (name, value))
    strings = [bytes([len(part)]) + part for part in fields]
    block = b"".join(b"\0" + name + value for name, value in zip(strings[::2], strings[1::2], strict=True))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0) + _frame(_HEADERS, _END_HEADERS, 1, block)


def _message(data: bytes) -> bytes:
    """A message of the call, in DATA frames."""
    prefixed = b"\0" + struct.pack(">I", len(data)) + data
    pieces: Sequence[bytes] = [
        prefixed[start : start + _MAX_FRAME_BYTES] for start in range(0, len(prefixed), _MAX_FRAME_BYTES)
    ]
    return b"".join(_frame(_DATA, 0, 1, piece) for piece in pieces)


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _parse(header: bytes) -> tuple[int, int, int, int]:
    """Length of the payload, type, flags and stream of a frame."""
    kind, flags, stream = struct.unpack(">BBI", header[3:])
    return int.from_bytes(header[:3], "big"), kind, flags, stream
