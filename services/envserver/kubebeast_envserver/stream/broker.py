"""Learners that a broker assigns to one stream: another source of learners for the dialer."""

import contextlib
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator

from google.protobuf.message import DecodeError

from kubebeast_common.access.addresses import is_host_port
from kubebeast_common.access.kept_call import KeptCall, Service
from kubebeast_common.text import printable
from kubebeast_envserver.config import UNIX
from kubebeast_envserver.stream.learners import Learner
from kubebeast_envserver.stream.session import Identity
from kubebeast_envserver.stream.shutdown import Shutdown
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import broker_pb2 as pb

METHOD = "/kubebeast.v1.Broker/Assign"
WAIT_S = 10.0
"""Longest wait for a learner, which then counts as a failed dial."""
REFRESH_S = 5.0
"""Interval at which refusals that have expired are noticed."""
NUM_TRIES = 4
"""Failed dials in a row after which a learner counts as unreachable ..."""
UNREACHABLE_S = 30.0
"""... for so long."""
MAX_REFUSALS = 64
"""Refusals that are kept: the limit of broker.proto."""
MAX_KNOWN = 16
"""Learners that are kept for the time without a broker."""

logger = logging.getLogger(__name__)


class UnassignedError(Exception):
    """Error of a stream without a learner."""

    def __init__(self, reason: str, *, is_idle: bool) -> None:
        """`is_idle` is True if the broker has no run for the stream, False if it does not answer."""
        super().__init__(reason)
        self.is_idle = is_idle


class BrokeredLearners:
    """Learners by a broker, for one stream. For one thread; the messages of the broker come in another one."""

    def __init__(
        self,
        service: Service,
        identity: Identity,
        shutdown: Shutdown,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connects to the broker, until `close`. The shutdown ends waits."""
        self._identity = identity
        self._shutdown = shutdown
        self._clock = clock
        self._broker = f"the broker at {service.address}"
        self._lock = threading.RLock()
        self._assigned: Learner | None = None
        self._known: dict[str, Learner] = {}
        """Learners of former assignments by instance_id, the newest last."""
        self._refused: dict[str, float] = {}
        """Times until which learners count as refusing, by instance_id."""
        self._dialed: Learner | None = None
        self._playing = ""
        self._num_failed = 0
        self._leave: Callable[[], None] | None = None
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._call = KeptCall(service, state=self._state, take=self._take, refresh_s=REFRESH_S)
        self._call.start()

    def close(self) -> None:
        """Ends the registration at the broker."""
        self._call.close()

    def next(self) -> Learner:
        """Returns the learner to dial: the assigned one, or without a broker those that it assigned before, in turn.

        Blocks for WAIT_S at most. Raises UnassignedError after that, and at the shutdown.
        """
        deadline = self._clock() + WAIT_S
        self._shutdown.on_request = lambda: self._news.put(None)
        try:
            while not self._shutdown.is_requested():
                with self._lock:
                    self._dialed = self._choose()
                if self._dialed is not None:
                    return self._dialed
                with contextlib.suppress(queue.Empty):
                    self._news.get(timeout=max(0.0, deadline - self._clock()))
                if self._clock() >= deadline:
                    break
        finally:
            self._shutdown.on_request = None
        is_idle = self._call.is_up
        reason = "has no run for this env-server" if is_idle else "does not answer"
        raise UnassignedError(f"{self._broker} {reason}", is_idle=is_idle)

    def note_welcome(self) -> None:
        """Records that the dialed learner has welcomed the stream."""
        assert self._dialed is not None
        with self._lock:
            self._playing, self._num_failed = self._dialed.instance_id, 0
        self._call.look()

    def note_end(self, *, was_welcomed: bool) -> None:
        """Records the end of the stream to the learner that `next` returned, or of a wait for one."""
        with self._lock:
            self._playing = ""
            if self._dialed is not None and not was_welcomed:
                self._num_failed += 1
                if self._num_failed >= NUM_TRIES and self._call.is_up:
                    self._refuse(self._dialed, self._clock() + UNREACHABLE_S)
        self._call.look()

    def note_refusal(self) -> bool:
        """Records that the dialed learner refuses the stream. Returns True: others may not."""
        assert self._dialed is not None
        with self._lock:
            self._playing = ""
            self._refuse(self._dialed, math.inf)
        self._call.look()
        return True

    @contextlib.contextmanager
    def calling_home(self, learner: Learner, leave: Callable[[], None]) -> Iterator[None]:
        """Calls `leave`, once and from any thread, if the broker assigns another learner during the block."""
        with self._lock:
            self._leave = leave
            self._leave_if_due()
        try:
            yield
        finally:
            with self._lock:
                self._leave = None

    def _state(self) -> bytes:
        with self._lock:
            return pb.StreamState(
                protocol_version=PROTOCOL_VERSION,
                instance_id=self._identity.instance_id,
                env_id=self._identity.env_id,
                wanted_run=self._identity.run,
                playing=self._playing,
                refused_by=sorted(self._refusing()),
            ).SerializeToString()

    def _take(self, message: bytes) -> None:
        try:
            learner = _read(message)
        except ValueError as error:
            logger.error("%s sent a bad message: %s", self._broker, error)
            return
        with self._lock:
            self._assigned = learner
            if learner is not None:
                self._known.pop(learner.instance_id, None)
                self._known = dict([*self._known.items(), (learner.instance_id, learner)][-MAX_KNOWN:])
            self._leave_if_due()
        self._news.put(None)

    def _choose(self) -> Learner | None:
        """Returns the learner to dial. The caller holds the lock, as for the functions below."""
        refusing = self._refusing()
        if self._call.is_up:
            learners = [self._assigned] if self._assigned is not None else []
        else:
            learners = [*reversed(self._known.values())]
        learners = [learner for learner in learners if learner.instance_id not in refusing]
        return learners[self._num_failed % len(learners)] if learners else None

    def _leave_if_due(self) -> None:
        assigned, dialed = self._assigned, self._dialed
        if self._leave is None or assigned is None or dialed is None:
            return
        if assigned.instance_id not in (dialed.instance_id, *self._refusing()):
            self._leave()
            self._leave = None

    def _refuse(self, learner: Learner, until_s: float) -> None:
        self._num_failed = 0
        self._refused.pop(learner.instance_id, None)
        self._refused = dict([*self._refused.items(), (learner.instance_id, until_s)][-MAX_REFUSALS:])

    def _refusing(self) -> set[str]:
        now_s = self._clock()
        return {name for name, until_s in self._refused.items() if until_s > now_s}


def _read(message: bytes) -> Learner | None:
    """Returns the learner of an Assignment. Raises ValueError."""
    try:
        assignment = pb.Assignment.FromString(message)
    except DecodeError as error:
        raise ValueError("malformed") from error
    if not assignment.learner_id:
        return None
    address = assignment.address
    if not (is_host_port(address) or address.startswith(UNIX)):
        raise ValueError(f"address = {printable(address, 100)!r}")
    return Learner(address, run=assignment.run_id, instance_id=assignment.learner_id)
