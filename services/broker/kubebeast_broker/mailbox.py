"""A mailbox for the newest of several values."""

import asyncio
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class Mailbox(Generic[ValueT]):
    """Holds the newest value, unless its one reader has taken it. For one event loop."""

    def __init__(self) -> None:
        self._values: list[ValueT] = []
        self._is_full = asyncio.Event()

    def put(self, value: ValueT) -> None:
        self._values = [value]
        self._is_full.set()

    async def take(self) -> ValueT:
        """Waits for a value."""
        await self._is_full.wait()
        self._is_full.clear()
        return self._values.pop()
