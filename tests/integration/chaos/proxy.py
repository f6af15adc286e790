"""A network that misbehaves on request: a TCP proxy between an env-server and its learner."""

import asyncio
import random
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

_PIECE_BYTES = 4096
_WAIT_S = 30.0

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Condition:
    """Condition of the network."""

    is_cut: bool = False
    is_stalled: bool = False
    delay_s: float = 0.0
    bytes_per_s: float = float("inf")
    corruption: random.Random | None = None


class FaultyProxy:
    """Forwards connections to `target`, "host:port"; `address` is its own. A fault lasts until the next, or `heal`.

    It runs in a thread of its own between enter and exit. Methods may be called from any thread and take effect before
    they return.
    """

    def __init__(self, target: str) -> None:
        self.address = ""
        self.num_corrupted = 0
        """Number of bytes changed so far."""
        self._target = target
        self._condition = _Condition()
        self._moves = asyncio.Event()  # cleared while stalled
        self._connections: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._connect, "127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.heal()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self._call(self._drop_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Ends every connection, and every new one."""
        self._call(self._change(_Condition(is_cut=True)))

    def stall(self) -> None:
        """Keeps connections and forwards nothing."""
        self._call(self._change(_Condition(is_stalled=True)))

    def slow_down(self, delay_s: float, bytes_per_s: float) -> None:
        """Delays every piece by delay_s, and in proportion to its size."""
        self._call(self._change(_Condition(delay_s=delay_s, bytes_per_s=bytes_per_s)))

    def corrupt(self, seed: int) -> None:
        """Changes one byte of every piece."""
        self._call(self._change(_Condition(corruption=random.Random(seed))))

    def heal(self) -> None:
        """Ends the fault; data held back by a stall is forwarded."""
        self._call(self._change(_Condition()))

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_WAIT_S)

    async def _change(self, condition: _Condition) -> None:
        self._condition = condition
        if condition.is_stalled:
            self._moves.clear()
        else:
            self._moves.set()
        if condition.is_cut:
            await self._drop_connections()

    async def _drop_connections(self) -> None:
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            if not self._condition.is_cut:
                await self._pass_both_ways(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # either side has gone, or shall go
        finally:
            self._connections.discard(connection)
            writer.transport.abort()

    async def _pass_both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Returns when one side has no more to send: an HTTP/2 connection does not live half-closed."""
        host, _, port = self._target.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        ways = [asyncio.create_task(self._pass(*way)) for way in ((reader, far_writer), (far_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            far_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE_BYTES):
            await self._moves.wait()
            condition = self._condition
            if condition.corruption is not None:
                piece = self._corrupted(piece, condition.corruption)
            if pause_s := condition.delay_s + len(piece) / condition.bytes_per_s:
                await asyncio.sleep(pause_s)
            writer.write(piece)
            await writer.drain()

    def _corrupted(self, piece: bytes, generator: random.Random) -> bytes:
        self.num_corrupted += 1
        changed = bytearray(piece)
        changed[generator.randrange(len(changed))] ^= generator.randrange(1, 256)
        return bytes(changed)
