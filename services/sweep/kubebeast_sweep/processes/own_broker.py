"""A broker as a process of the sweep, for learners that share a fleet."""

import contextlib
import logging
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.processes.tied import last_lines, start_tied

ADDRESS = "127.0.0.1:4432"
"""Address on which it listens, the default of `kubebeast broker`."""
OUTPUT = "broker.txt"
END_S = 5.0
"""Time for its end before it is killed."""
_POLL_S = 0.1
_MIN_LIFE_S = 60.0
"""Life after which it is started again if it ends by itself."""

logger = logging.getLogger(__name__)


class BrokerError(RuntimeError):
    """The broker has ended, and would end again; the message has the end of its output."""


class OwnBroker:
    """The process. Not thread-safe."""

    def __init__(self, folder: Path, address: str = ADDRESS) -> None:
        """Starts it, with its output in `folder`. Raises OSError, and ConfigError if its address is in use."""
        _wait_until_free(address)
        self._address, self._output = address, folder / OUTPUT
        self._start()

    def _start(self) -> None:
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else (0,)
        self._process = start_tied(["broker", f"--address={self._address}"], cores, self._output)
        self._began = time.monotonic()

    def look(self) -> None:
        """Starts the process again if it has ended. Raises BrokerError if that was soon, and OSError."""
        status = self._process.poll()
        if status is None:
            return
        if time.monotonic() - self._began < _MIN_LIFE_S:
            raise BrokerError(f"the broker has ended with status {status}: {last_lines(self._output)}")
        logger.warning("the broker has ended with status %d, and begins again", status)
        self._start()

    def close(self) -> None:
        """Ends the process. Blocks for END_S at most."""
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _wait_until_free(address: str) -> None:
    """Blocks while another process listens on the address: the broker of a sweep that was killed ends soon after it."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + END_S
    while _is_in_use(host, int(port)):
        if time.monotonic() > deadline:
            reason = f"{address} is in use, perhaps by the broker of another sweep; --broker {address} shares its fleet"
            raise ConfigError(f"broker = '': {reason}")
        time.sleep(_POLL_S)  # a port has no event for the end of its listener


def _is_in_use(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def own_broker(folder: Path, *, is_needed: bool) -> Iterator[OwnBroker | None]:
    """Yields a broker that runs during the block, if it is needed. Raises ConfigError and OSError."""
    if not is_needed:
        yield None
        return
    with contextlib.closing(OwnBroker(folder)) as broker:
        yield broker
