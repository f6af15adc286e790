"""A single look at a learner, and the thread that repeats it."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kubebeast_common.text import printable
from kubebeast_observe.errors import NotFoundError, WatchError
from kubebeast_observe.fleet.state import GroupState, PodState
from kubebeast_observe.scrape import Scrape, parse_metrics
from kubebeast_observe.top.ranks import RankRow, parse_ranks
from kubebeast_observe.top.source import MAX_REASON, Source
from kubebeast_observe.top.streams_json import StreamReading, parse_streams

INTERVAL_S = 1.0
"""Pause between the end of a look and the start of the next."""
WINDOW_S = 5.0
"""Approximate time over which rates are computed."""
FIRST_LOOK_S = 10.0
"""Longest wait for the first answer, and again for the second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look(Scrape):
    """A scrape of a learner with its streams, ranks and pods."""

    source: str
    """Displayed name of the source."""
    streams: tuple[StreamReading, ...] | None
    """None if the learner does not serve its streams."""
    ranks: tuple[RankRow, ...] = ()
    """All learners, the same from every rank; empty for a single learner."""
    pods: Mapping[str, PodState]
    """Pods of the env-servers by name; empty outside of Kubernetes."""
    groups: Sequence[GroupState] = ()
    """Groups of env-servers; empty outside of Kubernetes and if they cannot be read."""
    notes: tuple[str, ...] = ()
    """Missing parts of the look, with the reasons."""


class Looks(NamedTuple):
    """The two looks behind a view."""

    before: Look | None
    """The start of the window; None after a single look."""
    now: Look
    problem: str
    """The reason why `now` is out of date; "" if it is current."""


def take(source: Source, clock: Callable[[], float] = time.monotonic) -> Look:
    """Takes one look, blocking for a few requests. Raises WatchError if no learner gives a readable answer."""
    try:
        metrics = parse_metrics(source.page("metrics"))
    except ValueError as error:
        reason = printable(f"/metrics is not Prometheus's text format: {error}", MAX_REASON)
        raise WatchError(f"{source.name} is not a learner: {reason}") from error
    if "kubebeast_streams" not in metrics:
        is_env_server = "kubebeast_envserver_streams_connected" in metrics
        what = "it is an env-server" if is_env_server else "/metrics has no kubebeast_streams"
        raise WatchError(f"{source.name} is not a learner: {what}")
    taken_at_s = clock()
    streams, notes = None, []
    try:
        streams = parse_streams(source.page("streams"))
    except NotFoundError:
        notes.append("this learner does not report its streams: it is older than this command")
    except ValueError as error:
        notes.append(f"streams are unknown: {error}")
    ranks: tuple[RankRow, ...] = ()
    try:
        with contextlib.suppress(NotFoundError):  # an older learner, which has no ranks
            ranks = parse_ranks(source.page("ranks"))
    except ValueError as error:
        notes.append(f"other learners are unknown: {error}")
    pods, groups = source.fleet()
    notes += source.notes()
    return Look(
        taken_at_s=taken_at_s,
        source=source.name,
        metrics=metrics,
        streams=streams,
        ranks=ranks,
        pods=pods,
        groups=groups,
        notes=tuple(notes),
    )


class Poller:
    """Takes a look every INTERVAL_S in a daemon thread, so that slow peers do not block the caller."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._taken: deque[Look] = deque()
        self._error: WatchError | None = None
        threading.Thread(target=self._run, name="poll", daemon=True).start()

    def wait(self, num_looks: int, timeout_s: float = FIRST_LOOK_S) -> Looks:
        """Blocks until `num_looks` looks were taken. Raises WatchError if one fails or the time is over."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._error or len(self._taken) >= num_looks, timeout_s)
            if self._error is not None:
                raise self._error
            if not done:
                raise WatchError(f"{self._source.name} has not answered within {timeout_s:.0f} s")
            return self._looks()

    def newest(self) -> Looks:
        """Returns the newest looks without blocking; requires that a look was taken."""
        with self._changed:
            return self._looks()

    def _looks(self) -> Looks:
        before, now = self._taken[0], self._taken[-1]
        age_s = time.monotonic() - now.taken_at_s
        problem = str(self._error or "")
        if not problem and age_s > FIRST_LOOK_S:
            problem = f"{self._source.name} has not answered for {age_s:.0f} s"
        return Looks(before if before is not now else None, now, problem)

    def _run(self) -> None:
        while True:
            look, problem = None, None
            try:
                look = take(self._source)
            except WatchError as error:
                problem = error
            with self._changed:
                self._error = problem
                if look is not None:
                    self._taken.append(look)
                    while len(self._taken) > 2 and self._taken[1].taken_at_s <= look.taken_at_s - WINDOW_S:
                        self._taken.popleft()
                self._changed.notify_all()
            time.sleep(INTERVAL_S)
