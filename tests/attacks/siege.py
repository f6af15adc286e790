"""A real learner with a token and a real env-server that has it, beside peers that have none."""

import contextlib
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import psutil
from prometheus_client.parser import text_string_to_metric_families

from harness.certificates import issue, make_ca
from harness.chaos import books
from harness.processes.env_server import EnvServer
from harness.processes.learner_process import LearnerProcess
from kubebeast_common.access.tls_files import TlsFiles
from kubebeast_conformance.learner.floods import MOST_BYTES, Flood, run
from kubebeast_conformance.wire import http2
from kubebeast_conformance.wire.access import Access
from kubebeast_conformance.wire.http2 import ClosedError, RawConnection
from tests.integration.paced_tasks import SLOW

HONEST, STRANGER = "127.0.0.1", "127.0.0.2"
"""Source address of the env-servers, and that of an attacker at another address."""
TOKEN = "open-sesame"
HANDSHAKE_TIMEOUT_S = 2
MOST_GROWTH_MIB = 128
OUTCOMES = ("bytes", "calls", "no_call", "silent", "garbage", "blocked", "crowded")
LEARNER_FLAGS = (
    *("--batch-size=2", "--unroll-length=10", "--compile=off", "--log-interval-s=0.2"),
    f"--handshake-timeout-s={HANDSHAKE_TIMEOUT_S}",
)


class Siege:
    """A learner and an env-server; the learner trains on its rows between enter and exit."""

    def __init__(self, folder: Path, *flags: str, tls: bool = False) -> None:
        """flags: further flags of the learner."""
        folder.mkdir(exist_ok=True)
        token = folder / "token"
        token.write_text(f"{TOKEN}\n")
        self._folder = folder
        self._dialing = [f"--token-file={token}"]
        self.access = Access()
        """Transport security of the attackers; with TLS they know the authority of the learner's certificate."""
        own = [f"--token-file={token}"]
        if tls:
            authority = make_ca(folder)
            pair = issue(authority, folder, "learner")
            own += [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}"]
            self._dialing += [f"--tls-ca={authority.pem}"]
            self.access = Access(TlsFiles(ca=str(authority.pem)))
        self.learner = LearnerProcess(folder, *LEARNER_FLAGS, *own, *flags, warm=True)
        self._num_servers = 0
        self._lock = threading.Lock()
        self._connections: weakref.WeakSet[RawConnection] = weakref.WeakSet()
        self.neighbour = self.env_server()

    def __enter__(self) -> Self:
        self.learner.start()
        self.learner.wait_listening()
        self.neighbour.start()
        self.learner.wait_for_steps(1)
        return self

    def __exit__(self, *error: object) -> None:
        self.neighbour.kill()
        self.learner.kill()

    def env_server(self) -> EnvServer:
        """Returns another env-server with the token, not yet started."""
        self._num_servers += 1
        return EnvServer(self._num_servers, self.learner.address, self._folder, *self._dialing, num_envs=4, env=SLOW)

    def connect(self, source: str = STRANGER) -> RawConnection:
        connection = RawConnection(self.learner.address, self.access, source=source)
        with self._lock:
            self._connections.add(connection)
        return connection

    def count(self, name: str, **labels: str) -> float:
        """Returns the present value of one of the learner's counters; raises AssertionError if there is none."""
        for family in text_string_to_metric_families(self.learner.scrape()):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        raise AssertionError(f"no metric {name} with {labels}")

    def refused(self, outcomes: Sequence[str] = OUTCOMES) -> float:
        """Returns the number of connections that the learner rejected or closed."""
        return sum(self.count("kubebeast_connections_refused_total", reason=name) for name in outcomes)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Checks the condition at every progress line of the learner, which goes on training."""
        self.learner.wait_until(lambda _: condition())

    def is_cut_off(self, flood: Flood, source: str = STRANGER) -> bool:
        """Returns True if a connection that floods is closed before it has sent all of its bytes."""
        try:
            with self.connect(source) as connection:
                return run(connection, flood, MOST_BYTES) < MOST_BYTES
        except ClosedError:
            return True

    @contextlib.contextmanager
    def nobody_suffers(self) -> Iterator[None]:
        """Asserts that the env-server keeps its stream, training continues, memory stays and the books balance."""
        accepted = self.count("kubebeast_streams_accepted_total")
        memory = self.memory_mib()
        yield
        self.learner.wait_for_steps(40)
        assert self.count("kubebeast_streams_accepted_total") == accepted, "the env-server has lost its stream"
        assert self.memory_mib() - memory < MOST_GROWTH_MIB
        assert books.imbalance(self.learner.books()) == 0
        assert self.learner.is_running and self.learner.errors() == []

    def memory_mib(self) -> float:
        return float(psutil.Process(self.learner.pid).memory_info().rss) / 2**20

    @contextlib.contextmanager
    def attacked(self, attack: Callable[[], object], num_threads: int = 4) -> Iterator[None]:
        """Repeats the attack in `num_threads` threads until the context ends."""
        is_over = threading.Event()

        def repeat() -> None:
            while not is_over.is_set():
                with contextlib.suppress(OSError, ClosedError):  # refused: open the next connection
                    attack()

        threads = [threading.Thread(target=repeat) for _ in range(num_threads)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                while thread.is_alive():  # it may have opened another connection meanwhile
                    self._shut_connections()
                    thread.join(0.1)

    def _shut_connections(self) -> None:
        """Shuts down all connections, which the learner may hold until it admits or refuses them."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection.socket, socket.SHUT_RDWR)  # also below TLS


def first_words(connection: RawConnection, flood: Flood, num_pieces: int) -> None:
    """Sends the beginning of a flood: the preface and `num_pieces` pieces."""
    connection.send(http2.OPENING + flood.first + b"".join(flood.piece(number) for number in range(num_pieces)))
