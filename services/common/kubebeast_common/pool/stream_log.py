"""A pool's log of env-servers that come and go: few lines, however many they are."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kubebeast_common import log
from kubebeast_common.text import printable

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 20
"""Events logged one by one in INTERVAL_S; the others are counted, and logged as one line at its end."""
INTERVAL_S = 10.0
MAX_TEXT = 200
"""Characters shown of a text that a peer sent."""

_WARNINGS = frozenset({"invalid", "timeout", "dropped"})


class StreamEvent(Protocol):
    """kubebeast_native.StreamEvent is one. Texts that come from a peer are whatever it sent."""

    @property
    def kind(self) -> str:
        """joined, left, refused, dial_failed, connection_refused or accept_failed."""

    @property
    def env_server_id(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def env_id(self) -> str: ...
    @property
    def num_envs(self) -> int: ...
    @property
    def peer(self) -> str:
        """Transport address."""

    @property
    def reason(self) -> str:
        """Of an end, e.g. bye, or of a refused connection, e.g. garbage; else the name of the gRPC status."""

    @property
    def detail(self) -> str: ...
    @property
    def env_config(self) -> str:
        """Hello.env_config, where it joined."""


class StreamLog:
    """Logs what happens to streams. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = clock() + INTERVAL_S
        self._lines_left = LINES_AT_ONCE
        self._untold: Counter[str] = Counter()

    def tell(self, events: Iterable[StreamEvent]) -> None:
        """Logs `events`, oldest first, and what was only counted in an interval that is over. Call it often."""
        now = self._clock()
        if now >= self._ends_at:
            self.flush()
            self._ends_at, self._lines_left = now + INTERVAL_S, LINES_AT_ONCE
        for event in events:
            if self._lines_left > 0:
                self._lines_left -= 1
                level = logging.WARNING if _is_trouble(event) else logging.INFO
                logger.log(level, "%s", _line(event), extra=_names(event))
            else:
                self._untold[_kind(event)] += 1

    def flush(self) -> None:
        """Logs what was only counted so far."""
        if self._untold:
            logger.info("and %s", ", ".join(f"{count} more {kind}" for kind, count in self._untold.items()))
            self._untold.clear()


def _is_trouble(event: StreamEvent) -> bool:
    return event.kind not in ("joined", "left") or event.reason in _WARNINGS


def _kind(event: StreamEvent) -> str:
    """What events are counted by; a peer has no part in these words."""
    kind = event.kind.replace("_", " ")
    return f"{kind} ({event.reason})" if event.reason else kind


def _names(event: StreamEvent) -> Mapping[str, object]:
    """The fields of the line in a JSON log."""
    return log.fields(env_server_id=_shown(event.env_server_id), instance_id=_shown(event.instance_id))


def _line(event: StreamEvent) -> str:
    name = _shown(event.env_server_id) or "an env-server"
    detail = f": {_shown(event.detail)}" if event.detail else ""
    peer = _shown(event.peer)
    if event.kind == "joined":
        return f"{name} joined from {peer}: {event.num_envs} of {_shown(event.env_id)}{detail}"
    if event.kind == "left":
        return f"{name} left with {event.num_envs} environments: {event.reason}{detail}"
    if event.kind == "refused":
        return f"{name} at {peer} refused: {event.reason}{detail}"
    if event.kind == "connection_refused":
        return f"a connection from {peer} ended without a stream: {event.reason}{detail}"
    if event.kind == "accept_failed":
        return f"no connection can be accepted, trying again: {event.reason}{detail}"
    return f"{peer} dialled in vain: {event.reason}{detail}"


def _shown(text: str) -> str:
    return printable(text, MAX_TEXT)
