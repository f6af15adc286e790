"""Rate-limited log of the streams of a pool."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kubebeast_common import log
from kubebeast_common.text import printable

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 20
"""Number of events logged individually in INTERVAL_S. The others are counted and logged in one line at its end."""
INTERVAL_S = 10.0
MAX_TEXT = 200
"""Maximum number of logged characters of a text from a peer."""

_WARNINGS = frozenset({"invalid", "timeout", "dropped"})


class StreamEvent(Protocol):
    """An event of a stream, e.g. kubebeast_native.StreamEvent. Texts from a peer are unchecked."""

    @property
    def kind(self) -> str:
        """One of joined, left, refused, dial_failed, connection_refused, accept_failed."""

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
        """Reason of an end, e.g. bye, or of a refused connection, e.g. garbage; else the name of the gRPC status."""

    @property
    def detail(self) -> str: ...
    @property
    def env_config(self) -> str:
        """Hello.env_config of a stream that joined."""


class StreamLog:
    """A rate-limited logger of stream events. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = clock() + INTERVAL_S
        self._lines_left = LINES_AT_ONCE
        self._untold: Counter[str] = Counter()

    def tell(self, events: Iterable[StreamEvent]) -> None:
        """Logs `events`, oldest first, and the counts of an interval that is over. Call it often."""
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
        """Logs the counts so far."""
        if self._untold:
            logger.info("and %s", ", ".join(f"{count} more {kind}" for kind, count in self._untold.items()))
            self._untold.clear()


def _is_trouble(event: StreamEvent) -> bool:
    return event.kind not in ("joined", "left") or event.reason in _WARNINGS


def _kind(event: StreamEvent) -> str:
    """Returns the key for counting an event, which contains no text from a peer."""
    kind = event.kind.replace("_", " ")
    return f"{kind} ({event.reason})" if event.reason else kind


def _names(event: StreamEvent) -> Mapping[str, object]:
    """Returns the fields of the line in a JSON log."""
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
    return f"dialing {peer} failed: {event.reason}{detail}"


def _shown(text: str) -> str:
    return printable(text, MAX_TEXT)
