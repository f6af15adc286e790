"""The state of a broker: registered learners and streams, and the loop that assigns them. For one event loop."""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from kubebeast_broker.assignment.assigner import Assigner
from kubebeast_broker.assignment.shares import Claim
from kubebeast_broker.mailbox import Mailbox
from kubebeast_broker.messages import LearnerName, StreamName

TICK_S = 1.0
"""Longest time between two assignments: debts grow also if nothing happens."""
GATHER_S = 0.05
"""Time for further news after one, before streams are assigned: streams of a dead learner come one after the other."""
SETTLE_S = 5.0
"""Time after the start during which streams that play stay with their learners, which dial the new broker as well."""
AWAY_S = 1.0
"""Time for a learner that has lost its call to dial again. Streams that play with it stay meanwhile."""
MAX_STANDSTILL_S = 30.0
"""Time without an assignment after which the loop is taken for dead."""
MAX_PAST_RUNS = 1024
"""Most runs with stream-seconds that are kept."""

logger = logging.getLogger(__name__)


class FullError(Exception):
    """Error of a registration beyond a limit of the broker."""


@dataclass(frozen=True, slots=True)
class LearnerCall:
    """Registration of a learner, for the time of its call."""

    name: LearnerName
    end: Callable[[], None]
    """Called if another call takes its place."""
    shares: Mailbox[int] = field(default_factory=Mailbox)
    """Number of its streams, for the learner."""


@dataclass(slots=True)
class StreamCall:
    """Registration of a stream, for the time of its call."""

    name: StreamName
    end: Callable[[], None]
    """Called if another call takes its place."""
    learners: Mailbox[LearnerName | None] = field(default_factory=Mailbox)
    """The learner that it is assigned to; None if there is none."""
    learner: str = ""
    """instance_id of the newest one in `learners`; "" for None."""


class Broker:
    """Learners, streams and their assignment. Its methods never block."""

    def __init__(self, max_learners: int, max_streams: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.learners: dict[str, LearnerCall] = {}
        """By instance_id; also those that are away."""
        self.streams: dict[str, StreamCall] = {}
        """By instance_id."""
        self.num_lost = 0
        """Learners that lost their calls and did not come back."""
        self.run_seconds: OrderedDict[str, float] = OrderedDict()
        """Stream-seconds by run."""
        self.assigner = Assigner(clock())
        self._max_learners, self._max_streams = max_learners, max_streams
        self._clock = clock
        self._settles_until_s = clock() + SETTLE_S
        self._away_until_s: dict[str, float] = {}
        self._has_news = asyncio.Event()
        self._assigned_s = clock()

    def problem(self) -> str:
        """Returns the problem of the loop, or "" if it makes progress. From any thread."""
        standstill_s = self._clock() - self._assigned_s
        return "" if standstill_s < MAX_STANDSTILL_S else f"no assignment for {standstill_s:.0f} s"

    def register_learner(self, name: LearnerName, claim: Claim, end: Callable[[], None]) -> LearnerCall:
        """Adds a learner in the place of others with its instance_id or address. Raises FullError."""
        self._advance()
        for other in [each for each in self.learners.values() if each.name != name]:
            if name.instance_id == other.name.instance_id or name.address == other.name.address:
                is_away = other.name.instance_id in self._away_until_s
                self._remove(other, "another one has its name or address")
                if not is_away:
                    other.end()
        if (known := self.learners.get(name.instance_id)) is not None:
            if name.instance_id not in self._away_until_s:
                known.end()
        elif len(self.learners) >= self._max_learners:
            raise FullError(f"max_learners = {self._max_learners}")
        else:
            logger.info("run %s has a learner at %s with weight %g", name.run_id, name.address, claim.weight)
        self._away_until_s.pop(name.instance_id, None)
        call = self.learners[name.instance_id] = LearnerCall(name, end)
        self.assigner.add_learner(name.instance_id, name.run_id, claim)
        self.run_seconds.setdefault(name.run_id, 0.0)
        self.run_seconds.move_to_end(name.run_id)
        while len(self.run_seconds) > MAX_PAST_RUNS:
            self.run_seconds.popitem(last=False)
        self._has_news.set()
        return call

    def update_learner(self, call: LearnerCall, claim: Claim) -> None:
        if self.learners.get(call.name.instance_id) is call:
            self.assigner.learners[call.name.instance_id].claim = claim
            self._has_news.set()

    def end_learner(self, call: LearnerCall, *, is_planned: bool) -> None:
        """Ends a registration: the learner is removed, or away for a while if the end was not planned."""
        if self.learners.get(call.name.instance_id) is not call:
            return
        self._advance()
        if is_planned:
            self._remove(call, "it has ended")
        else:
            self.assigner.learners[call.name.instance_id].is_away = True
            self._away_until_s[call.name.instance_id] = self._clock() + AWAY_S
        self._has_news.set()

    def register_stream(self, name: StreamName, end: Callable[[], None]) -> StreamCall:
        """Adds a stream in the place of another with its instance_id. Raises FullError."""
        self._advance()
        if (known := self.streams.get(name.instance_id)) is not None:
            self._remove_stream(known)
            known.end()
        elif len(self.streams) >= self._max_streams:
            raise FullError(f"max_streams = {self._max_streams}")
        call = self.streams[name.instance_id] = StreamCall(name, end)
        self.assigner.add_stream(name.instance_id, name.wanted_run)
        call.learners.put(None)
        self._has_news.set()
        return call

    def update_stream(self, call: StreamCall, playing: str, refused_by: Collection[str]) -> None:
        if self.streams.get(call.name.instance_id) is call:
            self._advance()
            self.assigner.update_stream(call.name.instance_id, playing, refused_by)
            self._has_news.set()

    def end_stream(self, call: StreamCall) -> None:
        if self.streams.get(call.name.instance_id) is call:
            self._advance()
            self._remove_stream(call)
            self._has_news.set()

    def close(self) -> None:
        """Ends all calls."""
        present = [call for name, call in self.learners.items() if name not in self._away_until_s]
        for end in [call.end for call in present] + [call.end for call in self.streams.values()]:
            end()

    async def run(self) -> None:
        """Assigns streams until it is canceled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._has_news.wait()
                    await asyncio.sleep(GATHER_S)
            self._has_news.clear()
            self._assign()

    def _assign(self) -> None:
        self._advance()
        self._assigned_s = self._clock()
        for name in [name for name, until_s in self._away_until_s.items() if until_s <= self._clock()]:
            self.num_lost += 1
            self._remove(self.learners[name], "its connection broke")
        self.assigner.waits_for_learners = self._clock() < self._settles_until_s
        self.assigner.assign()
        for call in self.streams.values():
            self._send_if_new(call)
        for name, learner in self.assigner.learners.items():
            self.learners[name].shares.put(len(learner.streams))

    def _send_if_new(self, call: StreamCall) -> None:
        learner = self.assigner.streams[call.name.instance_id].learner
        if learner != call.learner:
            call.learner = learner
            call.learners.put(self.learners[learner].name if learner else None)

    def _remove(self, call: LearnerCall, reason: str) -> None:
        name = call.name
        streams = len(self.assigner.learners[name.instance_id].streams)
        logger.info("run %s loses its learner at %s with %d streams: %s", name.run_id, name.address, streams, reason)
        self._away_until_s.pop(name.instance_id, None)
        self.assigner.remove_learner(name.instance_id)
        del self.learners[name.instance_id]

    def _remove_stream(self, call: StreamCall) -> None:
        self.assigner.remove_stream(call.name.instance_id)
        del self.streams[call.name.instance_id]

    def _advance(self) -> None:
        for name, seconds in self.assigner.advance(self._clock()).items():
            run_id = self.learners[name].name.run_id
            self.run_seconds[run_id] = self.run_seconds.get(run_id, 0.0) + seconds
