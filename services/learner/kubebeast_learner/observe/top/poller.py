"""One look at a learner, and the thread that looks again and again."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kubebeast_common.text import printable
from kubebeast_learner.observe.fleet.errors import NotFoundError, WatchError
from kubebeast_learner.observe.fleet.state import GroupState, PodState
from kubebeast_learner.observe.scrape import Scrape, parse_metrics
from kubebeast_learner.observe.top.ranks import RankRow, parse_ranks
from kubebeast_learner.observe.top.source import MAX_REASON, Source
from kubebeast_learner.observe.top.streams_json import StreamReading, parse_streams

INTERVAL_S = 1.0
"""From the end of one look to the next."""
WINDOW_S = 5.0
"""Rates are over about as long."""
FIRST_LOOK_S = 10.0
"""Longest wait for a first answer, and then for a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look(Scrape):
    """A scrape of a learner, and what surrounds it."""

    source: str
    """What was looked at, for people."""
    streams: tuple[StreamReading, ...] | None
    """None where the learner does not tell."""
    ranks: tuple[RankRow, ...] = ()
    """Of several learners, whichever of them was looked at."""
    pods: Mapping[str, PodState]
    """Of env-servers, by name; empty outside of Kubernetes."""
    groups: Sequence[GroupState] = ()
    """Of env-servers; empty outside of Kubernetes and where they cannot be read."""
    notes: tuple[str, ...] = ()
    """What could not be seen, and why."""


class Looks(NamedTuple):
    """What a view is made of."""

    before: Look | None
    """The start of the window, None after a single look."""
    now: Look
    problem: str
    """Why `now` is not up to date; "" while it is."""


def take(source: Source, clock: Callable[[], float] = time.monotonic) -> Look:
    """Blocks for a few requests. WatchError when there is no learner, or nothing that can be read."""
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
        notes.append("this learner does not tell of its streams, it is older than this command")
    except ValueError as error:
        notes.append(f"streams are unknown: {error}")
    ranks: tuple[RankRow, ...] = ()
    try:
        with contextlib.suppress(NotFoundError):  # an older one, which is alone
            ranks = parse_ranks(source.page("ranks"))
    except ValueError as error:
        notes.append(f"other learners are unknown: {error}")
    pods, groups = source.fleet()
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
    """Looks every INTERVAL_S, in a thread that ends with the process: no peer, however slow, holds up who asks."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._taken: deque[Look] = deque()
        self._error: WatchError | None = None
        threading.Thread(target=self._run, name="poll", daemon=True).start()

    def wait(self, num_looks: int, timeout_s: float = FIRST_LOOK_S) -> Looks:
        """Blocks until there have been so many looks. WatchError when one fails, or none ends in time."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._error or len(self._taken) >= num_looks, timeout_s)
            if self._error is not None:
                raise self._error
            if not done:
                raise WatchError(f"{self._source.name} has not answered within {timeout_s:.0f} s")
            return self._looks()

    def newest(self) -> Looks:
        """Does not block; there has been a look."""
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
