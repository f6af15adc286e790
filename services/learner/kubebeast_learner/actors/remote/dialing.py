"""Dialing of env-servers at the current addresses of their names."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from kubebeast_common.access.addresses import join_host_ports, resolve, split_host_ports

logger = logging.getLogger(__name__)

RESOLVE_INTERVAL_S = 10.0
"""Seconds between resolutions of names: the records of a headless Service follow its pods."""

Resolve = Callable[[str], Sequence[str]]
"""A function that returns the IP addresses of a host, OSError if there are none. May block."""


class Dialer(threading.Thread):
    """A thread that makes a pool dial its targets, and new addresses of their names, from `start` to `stop`.

    A name that cannot be resolved keeps its previous addresses.
    """

    def __init__(
        self,
        dial: Callable[[Sequence[tuple[str, str]]], None],
        targets: Sequence[str],
        *,
        max_endpoints: int,
        resolve: Resolve = resolve,
        interval_s: float = RESOLVE_INTERVAL_S,
    ) -> None:
        """dial: ActorPool.dial. targets: each "host:port" or "host:first-last".

        max_endpoints: most addresses to dial.
        """
        super().__init__(name="dialer", daemon=True)
        self._dial_endpoints = dial
        self._targets = targets
        self._max_endpoints = max_endpoints
        self._resolve = resolve
        self._interval_s = interval_s
        self._addresses: dict[str, Sequence[str]] = {}
        self._problems: dict[str, str] = {}
        self._endpoints: list[tuple[str, str]] = []
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ends all changes; does not wait for a name that is being resolved. Idempotent."""
        self._stopping.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def run(self) -> None:
        """The thread's loop; called by `start`."""
        while True:
            self._look_up()
            endpoints = list(self._all_endpoints())
            if self._stopping.is_set():
                return
            if endpoints != self._endpoints:
                self._dial(endpoints)
            if self._stopping.wait(self._interval_s):
                return

    def _look_up(self) -> None:
        for host in dict.fromkeys(split_host_ports(target)[0] for target in self._targets):
            try:
                self._addresses[host] = sorted(set(self._resolve(host)))
            except (OSError, UnicodeError) as error:  # an invalid name is a UnicodeError
                problem = str(error)
            else:
                problem = ""
            if problem and problem != self._problems.get(host):
                logger.warning("%s cannot be resolved, asking again: %s", host, problem)
            self._problems[host] = problem

    def _all_endpoints(self) -> Iterator[tuple[str, str]]:
        """Yields (address, name in its certificate); the name is empty if the host is an address itself."""
        for target in self._targets:
            host, ports = split_host_ports(target)
            for address in self._addresses.get(host, ()):
                name = "" if address == host else host
                yield from ((endpoint, name) for endpoint in join_host_ports(address, ports))

    def _dial(self, endpoints: list[tuple[str, str]]) -> None:
        self._endpoints = endpoints
        if len(endpoints) > self._max_endpoints:
            logger.warning("dialing %d of %d addresses; see --max-streams", self._max_endpoints, len(endpoints))
        self._dial_endpoints(endpoints[: self._max_endpoints])
