"""Received messages of a call, in order, and its end."""

import queue
from dataclasses import dataclass

import grpc

from kubebeast_conformance.contract.violation import ViolationError


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a call by the peer."""

    code: grpc.StatusCode | None
    """OK if the peer has closed its side; the status of a call by the suite; None if the call broke."""
    details: str = ""

    def __str__(self) -> str:
        name = "a broken call" if self.code is None else self.code.name
        return f"{name}: {self.details}" if self.details else name


class SilentError(Exception):
    """Nothing arrived in time."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"nothing came within {timeout_s:g} s")


class Inbox:
    """A queue that a thread fills and the suite reads."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[bytes | Ended] = queue.SimpleQueue()
        self._next: bytes | Ended | None = None

    def put(self, item: bytes | Ended) -> None:
        """Appends a message or the end. Thread-safe."""
        self._items.put(item)

    def get(self, timeout_s: float) -> bytes | Ended:
        """Returns the next message, or the end, which stays. Blocks; raises SilentError after timeout_s seconds."""
        item = self.peek(timeout_s)
        if not isinstance(item, Ended):
            self._next = None
        return item

    def peek(self, timeout_s: float) -> bytes | Ended:
        """Returns the next result of `get`. Blocks; raises SilentError after timeout_s seconds."""
        if self._next is None:
            try:
                self._next = self._items.get(timeout=timeout_s)
            except queue.Empty:
                raise SilentError(timeout_s) from None
        return self._next

    def get_due(self, timeout_s: float, rule: str, missing: str) -> bytes | Ended:
        """Like `get`, but raises ViolationError of `rule` with the text `missing` if nothing arrives."""
        try:
            return self.get(timeout_s)
        except SilentError as error:
            raise ViolationError(rule, "", f"{missing}: {error}") from error

    def get_due_message(self, timeout_s: float, rule: str, missing: str) -> bytes:
        """Like `get_due`, but also raises ViolationError at the end."""
        item = self.get_due(timeout_s, rule, missing)
        if isinstance(item, Ended):
            raise ViolationError(rule, "", f"{missing}: the stream ended with {item}")
        return item
