"""The learners that one stream may play with, and which of them it prefers.

Rendezvous hashing (Thaler and Ravishankar 1998, https://doi.org/10.1109/90.663936): each stream prefers the learner for
which the hash of both is the highest. So streams spread over the learners without asking anybody, and where a learner
comes or goes, only those streams move that are or were its own.
"""

import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubebeast_common.access.addresses import join_host_ports, resolve, split_host_ports
from kubebeast_common.backoff import Backoff
from kubebeast_envserver.config import DNS, UNIX

PATIENCE_S = 15.0
"""How long a stream dials the learner that it prefers before it tries others: most that are away start again."""
LOOK_EVERY_S = 20.0
"""At most so long after it has come (back), a stream notices the learner that it prefers ..."""
LONGEST_LOOK_S = 640.0
"""... or so long where that one has listened and not welcomed the stream again and again."""
_CONNECT_TIMEOUT_S = 2.0


class UnresolvedError(OSError):
    """No name stands for an address at the moment."""


@dataclass(frozen=True, slots=True)
class Learner:
    address: str
    """What is dialed: "host:port" or "unix:/path"."""
    certificate_name: str = ""
    """The name that its certificate must have; "" where that is the dialed host."""

    def is_listening(self) -> bool:
        """Whether it takes a connection, which is closed again. Blocks for _CONNECT_TIMEOUT_S at most."""
        if self.address.startswith(UNIX):
            return Path(self.address.removeprefix(UNIX)).is_socket()
        host, ports = split_host_ports(self.address)
        with contextlib.suppress(OSError), socket.create_connection((host, ports[0]), _CONNECT_TIMEOUT_S):
            return True
        return False


def by_preference(instance_id: str, learners: Sequence[Learner]) -> list[Learner]:
    """The learners in the order in which a stream of that instance_id wants them, whatever their own order is."""

    def weight(learner: Learner) -> bytes:
        return hashlib.blake2b(f"{instance_id} {learner.address}".encode(), digest_size=8).digest()

    return sorted(learners, key=weight, reverse=True)


class Learners:
    """Those that the addresses of the configuration mean, to one stream. For one thread, but for `calling_home`."""

    def __init__(
        self,
        addresses: Sequence[str],
        instance_id: str,
        *,
        resolve: Callable[[str], Sequence[str]] = resolve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """addresses: of the configuration. resolve: IP addresses of a host; OSError, UnicodeError."""
        self._addresses = addresses
        self._instance_id = instance_id
        self._resolve = resolve
        self._clock = clock
        self._known: dict[str, Sequence[str]] = {}
        is_fixed = not any(address.startswith(DNS) for address in addresses)
        self._is_one_address = is_fixed and len(self._in_order()) == 1
        self._failing_since: float | None = None
        self._turn = 0
        """Dials since the patience with the preferred one was over."""
        self._dials_preferred = True
        self._looks = Backoff(LOOK_EVERY_S, LONGEST_LOOK_S)
        self._look_after_s = self._looks.next_delay_s()
        """Longer after every time that the stream has left for the preferred learner and was not welcomed there."""

    def next(self) -> Learner:
        """Whom to dial: the preferred one, or after PATIENCE_S of failures all of them in turn.

        Blocks for name resolution; UnresolvedError where the names stand for no address.
        """
        order = self._in_order()
        if self._failing_since is not None and self._clock() - self._failing_since >= PATIENCE_S:
            self._turn += 1
        self._dials_preferred = self._turn % len(order) == 0
        return order[self._turn % len(order)]

    def note_end(self, *, was_welcomed: bool) -> None:
        """Of the stream to whom `next` has named."""
        if not was_welcomed:
            self._failing_since = self._clock() if self._failing_since is None else self._failing_since
            return
        self._failing_since, self._turn = None, 0
        if self._dials_preferred:
            self._looks.reset()
            self._look_after_s = self._looks.next_delay_s()

    @contextlib.contextmanager
    def calling_home(self, learner: Learner, leave: Callable[[], None]) -> Iterator[None]:
        """During the block, in which the stream plays with `learner`: calls `leave`, once and from another thread, when
        another one is preferred and listens.
        """
        if self._is_one_address:
            yield
            return
        done, has_left = threading.Event(), threading.Event()

        def look() -> None:
            while not done.wait(self._look_after_s):
                with contextlib.suppress(OSError):
                    preferred = self._in_order()[0]
                    if preferred != learner and preferred.is_listening():
                        has_left.set()
                        leave()
                        return

        threading.Thread(target=look, name="learners", daemon=True).start()
        try:
            yield
        finally:
            done.set()
            if has_left.is_set():
                self._look_after_s = self._looks.next_delay_s()

    def _in_order(self) -> list[Learner]:
        learners = [learner for part in self._addresses for learner in self._meant_by(part)]
        if not learners:
            raise UnresolvedError(f"no address behind {', '.join(self._addresses)}")
        return by_preference(self._instance_id, learners)

    def _meant_by(self, part: str) -> Iterator[Learner]:
        """A name that cannot be resolved keeps the addresses it had."""
        if part.startswith(UNIX):
            yield Learner(part)
            return
        host, ports = split_host_ports(part.removeprefix(DNS))
        if not part.startswith(DNS):
            yield from map(Learner, join_host_ports(host, ports))
            return
        with contextlib.suppress(OSError, UnicodeError):
            self._known[host] = self._resolve(host)
        for address in dict.fromkeys(self._known.get(host, ())):
            name = "" if address == host else host
            yield from (Learner(where, name) for where in join_host_ports(address, ports))
