"""Learners that one stream may play with, in the order of its preference.

Rendezvous hashing (Thaler and Ravishankar 1998, https://doi.org/10.1109/90.663936): each stream prefers the learner for
which the hash of both is the highest. So streams spread over the learners without coordination, and if a learner comes
or goes, only the streams that prefer it move.
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
"""Seconds for which a stream dials its preferred learner before it tries others: most absent ones are restarting."""
LOOK_EVERY_S = 20.0
"""Maximum seconds until a stream notices that its preferred learner has come (back) ..."""
LONGEST_LOOK_S = 640.0
"""... and the limit of the growth of this time if that learner repeatedly listens without welcoming the stream."""
_CONNECT_TIMEOUT_S = 2.0


class UnresolvedError(OSError):
    """Error of addresses with names that resolve to nothing at the moment."""


@dataclass(frozen=True, slots=True)
class Learner:
    address: str
    """Address to dial: "host:port" or "unix:/path"."""
    certificate_name: str = ""
    """Name that the certificate must have; "" for the dialed host."""
    run: str = ""
    """Run that it trains, if a broker has said so; "" if unknown."""
    instance_id: str = ""
    """Its name at the broker; "" without one."""

    def is_listening(self) -> bool:
        """Returns True if it accepts a connection, which is closed again. Blocks for at most _CONNECT_TIMEOUT_S."""
        if self.address.startswith(UNIX):
            return Path(self.address.removeprefix(UNIX)).is_socket()
        host, ports = split_host_ports(self.address)
        with contextlib.suppress(OSError), socket.create_connection((host, ports[0]), _CONNECT_TIMEOUT_S):
            return True
        return False


def by_preference(instance_id: str, learners: Sequence[Learner]) -> list[Learner]:
    """Returns the learners in the order of preference of a stream with that instance_id. Their own order is ignored."""

    def weight(learner: Learner) -> bytes:
        return hashlib.blake2b(f"{instance_id} {learner.address}".encode(), digest_size=8).digest()

    return sorted(learners, key=weight, reverse=True)


class Learners:
    """Learners at the configured addresses, for one stream. For one thread, except in `calling_home`."""

    def __init__(
        self,
        addresses: Sequence[str],
        instance_id: str,
        *,
        resolve: Callable[[str], Sequence[str]] = resolve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`resolve` returns the IP addresses of a host, or raises OSError or UnicodeError."""
        self._addresses = addresses
        self._instance_id = instance_id
        self._resolve = resolve
        self._clock = clock
        self._known: dict[str, Sequence[str]] = {}
        is_fixed = not any(address.startswith(DNS) for address in addresses)
        self._is_one_address = is_fixed and len(self._in_order()) == 1
        self._failing_since: float | None = None
        self._turn = 0
        """Dials since the end of the patience with the preferred learner."""
        self._dials_preferred = True
        self._looks = Backoff(LOOK_EVERY_S, LONGEST_LOOK_S)
        self._look_after_s = self._looks.next_delay_s()
        """Seconds between looks: more each time that the stream has left for the preferred learner without being
        welcomed.
        """

    def next(self) -> Learner:
        """Returns the learner to dial: the preferred one, or after PATIENCE_S of failures all of them in turn.

        Blocks for name resolution. Raises UnresolvedError if the names resolve to no address.
        """
        order = self._in_order()
        if self._failing_since is not None and self._clock() - self._failing_since >= PATIENCE_S:
            self._turn += 1
        self._dials_preferred = self._turn % len(order) == 0
        return order[self._turn % len(order)]

    def note_welcome(self) -> None:
        """Records that the learner has welcomed the stream; nothing depends on it."""

    def note_refusal(self) -> bool:
        """Returns False: if a learner refuses the stream, the others of its run do as well."""
        return False

    def close(self) -> None:
        """Does nothing: no connection is open."""

    def note_end(self, *, was_welcomed: bool) -> None:
        """Records the end of the stream to the learner that `next` returned."""
        if not was_welcomed:
            self._failing_since = self._clock() if self._failing_since is None else self._failing_since
            return
        self._failing_since, self._turn = None, 0
        if self._dials_preferred:
            self._looks.reset()
            self._look_after_s = self._looks.next_delay_s()

    @contextlib.contextmanager
    def calling_home(self, learner: Learner, leave: Callable[[], None]) -> Iterator[None]:
        """Calls `leave`, once and from another thread, if another learner is preferred and listens.

        The stream plays with `learner` during the block.
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
        """Yields the learners at an address. A name that cannot be resolved keeps its former addresses."""
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
