"""Assignment of whole streams to learners, by shares over time and with few moves. No I/O, no clock.

A learner's debt is the time of streams, in stream-seconds, that it has missed so far. The need of a learner is

    share - streams assigned + debt / HORIZON_S, the last term within [-1, 1],

and a stream moves from the learner with the least need to the one with the greatest if the two differ by GAP. A move
changes the difference by 2, so a fleet at rest stays at rest. Shares that are no whole numbers let debts grow, by which
single streams move back and forth at a slow pace.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kubebeast_broker.assignment.shares import Claim, shares_of

HORIZON_S = 5.0
"""Stream-seconds of debt that weigh as much as one stream. In five minutes, a debt of as many is 1 % of the share of a
learner with 1.6 streams, and a debt at the end of a window may follow a surplus at its begin.
"""
GAP = 2.0 - 1e-9
"""Difference of two needs from which a stream moves: the least that a move does not turn around."""
MIN_STAY_S = 10.0
"""Time that a stream plays with a learner before it moves, if the learner stays: a move costs the rest of an unroll."""
MAX_DEBT_S = 60.0
"""Most debt, in stream-seconds: time missed while streams finish long episodes is made up for, hours without any stream
are not.
"""


@dataclass(slots=True)
class Learner:
    """A learner and the streams that are assigned to it."""

    run_id: str
    claim: Claim
    is_away: bool = False
    """True if it may be gone: streams that play with it stay, and it gets no others."""
    debt_s: float = 0.0
    num_playing: int = 0
    """Streams that play with it, assigned to it or not."""
    streams: set[str] = field(default_factory=set)
    """Streams that are assigned to it."""


@dataclass(slots=True)
class Stream:
    """A stream of an env-server."""

    wanted_run: str = ""
    """The only run that it serves; empty: any."""
    refused_by: frozenset[str] = frozenset()
    playing: str = ""
    """Learner that it plays with, registered or not; empty: none."""
    learner: str = ""
    """Learner that it is assigned to; empty: none."""
    arrived_s: float = 0.0
    """Time at which it began to play with `playing`."""


class Assigner:
    """Learners and streams, and their assignment. Times are in seconds of any clock. Not thread-safe."""

    def __init__(self, now_s: float) -> None:
        self.learners: dict[str, Learner] = {}
        self.streams: dict[str, Stream] = {}
        self.shares: Mapping[str, float] = {}
        """Share of each learner at the last `assign`."""
        self.num_moves = 0
        """Streams that had to leave a learner that stays."""
        self.waits_for_learners = False
        """True while streams that play with unknown learners wait for these to register."""
        self._now_s = now_s

    def add_learner(self, name: str, run_id: str, claim: Claim) -> None:
        """Adds a learner, or has one back that is away. Streams that play with it already are assigned to it."""
        if name in self.learners:
            self.learners[name].claim, self.learners[name].is_away = claim, False
            return
        learner = self.learners[name] = Learner(run_id, claim)
        for key, stream in self.streams.items():
            learner.num_playing += stream.playing == name
            if stream.playing == name and not stream.learner and self._may_play(stream, name):
                self._give(key, name)

    def remove_learner(self, name: str) -> None:
        for key in self.learners[name].streams:
            self.streams[key].learner = ""
        del self.learners[name]

    def add_stream(self, key: str, wanted_run: str = "") -> None:
        self.streams[key] = Stream(wanted_run)

    def update_stream(self, key: str, playing: str, refused_by: Collection[str]) -> None:
        """Notes the state of a stream. One that plays with a learner, and is assigned to none, is assigned to that."""
        stream = self.streams[key]
        stream.refused_by = frozenset(refused_by)
        if playing != stream.playing:
            self._count_playing(stream, -1)
            stream.playing, stream.arrived_s = playing, self._now_s
            self._count_playing(stream, 1)
        if not stream.learner and self._may_play(stream, playing):
            self._give(key, playing)

    def remove_stream(self, key: str) -> None:
        stream = self.streams[key]
        self._count_playing(stream, -1)
        self._take(key)
        del self.streams[key]

    def advance(self, now_s: float) -> Mapping[str, float]:
        """Adds the time since the last call to the debts; returns the stream-seconds of each learner in it."""
        elapsed_s, self._now_s = now_s - self._now_s, now_s
        present = {name: learner for name, learner in self.learners.items() if not learner.is_away}
        num_playing = sum(learner.num_playing for learner in present.values())
        num_shared = sum(self.shares.get(name, 0.0) for name in present)
        ratio = num_playing / num_shared if num_shared else 0.0
        for name, learner in present.items():
            missed_s = elapsed_s * (self.shares.get(name, 0.0) * ratio - learner.num_playing)
            learner.debt_s = _within(learner.debt_s + missed_s, MAX_DEBT_S)
        return {name: elapsed_s * learner.num_playing for name, learner in self.learners.items()}

    def assign(self) -> None:
        """Assigns streams at the time of the last `advance`. Those that no learner accepts are assigned to none."""
        before = {key: stream.learner or None for key, stream in self.streams.items()}
        choices = dict(self._choices())
        self.shares = shares_of(
            {name: learner.claim for name, learner in self.learners.items()},
            Counter(choice for choice in choices.values() if choice),
        )
        needs = {name: self._need(name) for name, learner in self.learners.items() if not learner.is_away}
        for key, choice in choices.items():
            if self.streams[key].learner not in choice:
                self._take(key)
                if choice:
                    self._give(key, max(choice, key=lambda name: (needs[name], name)))
                    needs[self.streams[key].learner] -= 1.0
        self._move(needs, choices)
        for key, stream in self.streams.items():
            self.num_moves += stream.playing == before[key] != stream.learner

    def _choices(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yields each stream that can be assigned, with the learners it may be assigned to."""
        known: dict[tuple[str, frozenset[str]], frozenset[str]] = {}
        for key, stream in self.streams.items():
            if self._is_pinned(stream):
                continue
            kind = stream.wanted_run, stream.refused_by
            if kind not in known:
                known[kind] = frozenset(
                    name for name in self.learners if not self.learners[name].is_away and self._may_play(stream, name)
                )
            yield key, known[kind]

    def _is_pinned(self, stream: Stream) -> bool:
        """Returns True for a stream that plays with a learner which is away, or which may yet register."""
        learner = self.learners.get(stream.playing)
        if learner is None:
            return self.waits_for_learners and stream.playing != "" and not stream.learner
        return learner.is_away and stream.learner == stream.playing

    def _move(self, needs: dict[str, float], choices: Mapping[str, frozenset[str]]) -> None:
        leaving = {name: self._in_order_of_leaving(name, choices) for name in needs}
        while move := _next_move(needs, leaving, choices):
            key, name, to = move
            needs[name] += 1.0
            needs[to] -= 1.0
            self._take(key)
            self._give(key, to)

    def _in_order_of_leaving(self, name: str, choices: Collection[str]) -> list[str]:
        """Returns the streams that may leave a learner: at the end those that have not come yet, before them the
        oldest.
        """

        def rank(key: str) -> tuple[bool, float]:
            return self.streams[key].playing == name, self.streams[key].arrived_s

        last = True, self._now_s - MIN_STAY_S
        free = (key for key in self.learners[name].streams if key in choices and rank(key) <= last)
        return sorted(free, key=lambda key: (rank(key), key), reverse=True)

    def _need(self, name: str) -> float:
        learner = self.learners[name]
        return self.shares[name] - len(learner.streams) + _within(learner.debt_s / HORIZON_S, 1.0)

    def _may_play(self, stream: Stream, name: str) -> bool:
        learner = self.learners.get(name)
        return learner is not None and name not in stream.refused_by and stream.wanted_run in ("", learner.run_id)

    def _count_playing(self, stream: Stream, change: int) -> None:
        if stream.playing in self.learners:
            self.learners[stream.playing].num_playing += change

    def _give(self, key: str, name: str) -> None:
        self.streams[key].learner = name
        self.learners[name].streams.add(key)

    def _take(self, key: str) -> None:
        if name := self.streams[key].learner:
            self.learners[name].streams.discard(key)
            self.streams[key].learner = ""


def _next_move(
    needs: Mapping[str, float], leaving: Mapping[str, list[str]], choices: Mapping[str, frozenset[str]]
) -> tuple[str, str, str] | None:
    """Takes the next stream that is to move from `leaving`; returns it, its learner and the next one, or None.

    The neediest learner has the first choice.
    """
    order = sorted(needs, key=lambda name: (needs[name], name))
    for to in reversed(order):
        for name in order:
            if needs[to] - needs[name] < GAP:
                break
            for place in reversed(range(len(leaving[name]))):
                if to in choices[leaving[name][place]]:
                    return leaving[name].pop(place), name, to
    return None


def _within(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))
