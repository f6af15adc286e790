"""Effect of attackers without a token on a learner and its env-servers: steps, memory and time to recover.

    python -m benchmarks.attacks

A real `kubebeast learner` with a token and real env-servers share all cores but one; the attacker has the last core, so
that its own work does not affect the result. For each attack, it measures steps per second before and during it, the
connections that the learner has ended, the time after it until the rate is back at nine tenths, the learner's memory
before it, at its peak and later, and the time to end on SIGTERM during it. The attacker has a separate address, or that
of the env-servers (--own-address).
"""

import dataclasses
import os
import tempfile
import threading
import time
from pathlib import Path

import psutil
import tyro

from benchmarks import attackers, report
from harness.certificates import issue, make_ca
from harness.processes.env_server import EnvServer
from harness.processes.learner_process import LearnerProcess
from kubebeast_conformance.learner.floods import FLOODS

_ENV = "kubebeast_envserver.catch:Catch-v0"
_RECOVERED = 0.9
_LOOK_S = 0.25
_WARM_UP_STEPS = 40_000
_MIB = 2**20


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    attacks: tuple[str, ...] = (*(flood.name for flood in FLOODS), attackers.SILENT)
    connections: tuple[int, ...] = (4,)
    """Numbers of concurrent connections of the attacker, each measured in turn."""
    seconds: float = 8.0
    """Length of the attack, and of the measurement before it, in seconds."""
    after_seconds: float = 30.0
    """Time from the attack's end to the last measurement of memory, in seconds."""
    servers: int = 4
    """Number of env-servers."""
    envs: int = 8
    """Environments of each env-server."""
    own_address: bool = False
    """If set, the attacker has the address of the env-servers."""
    restart: bool = False
    """If set, another env-server starts during the attack, and the time until it joins is measured."""
    tls: bool = False
    quick: bool = False
    """Two short attacks as a smoke test; the result has a separate name."""

    def scaled(self) -> "Settings":
        if not self.quick:
            return self
        return dataclasses.replace(
            self, attacks=("pings", "rapid reset of Act"), seconds=2.0, after_seconds=2.0, servers=1
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    attack: str
    connections: int
    before_steps_per_s: float
    beneath_steps_per_s: float
    ratio: float
    ended_per_s: float
    """Connections of the attacker that the learner has ended, per second."""
    recovered_s: float
    """Time to recover; inf if longer than after_seconds."""
    rejoined_s: float | None
    """Time from the start of an env-server during the attack to its stream; None without --restart."""
    before_mib: float
    most_mib: float
    later_mib: float
    streams_lost: int
    sigterm_s: float


def measure(attack: str, connections: int, settings: Settings, folder: Path) -> Row:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise RuntimeError("the attacker needs a core of its own: this process may use only one")
    os.sched_setaffinity(0, cores[:-1])  # inherited by the processes below
    try:
        with _Field(folder, settings) as field:
            return field.measure(attack, connections, cores[-1])
    finally:
        os.sched_setaffinity(0, cores)


class _Field:
    """A training learner and its env-servers. A context manager."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._settings = settings
        token = folder / "token"
        token.write_text("open-sesame\n")
        own, dialing, self._ca = [f"--token-file={token}"], [f"--token-file={token}"], ""
        if settings.tls:
            authority = make_ca(folder)
            pair = issue(authority, folder, "learner")
            self._ca = str(authority.pem)
            own += [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}"]
            dialing += [f"--tls-ca={self._ca}"]
        flags = ("--batch-size=4", "--unroll-length=10", "--compile=off", "--log-interval-s=0.5", "--learner-threads=1")
        self._learner = LearnerProcess(folder, *flags, *own)
        self._servers = [
            EnvServer(place, self._learner.address, folder, *dialing, num_envs=settings.envs, env=_ENV)
            for place in range(settings.servers + 1)
        ]

    def __enter__(self) -> "_Field":
        self._learner.start()
        self._learner.wait_listening()
        for server in self._servers[:-1]:
            server.start()
        self._learner.wait_until(lambda _: self._streams() == self._settings.servers)
        self._learner.wait_for_steps(_WARM_UP_STEPS)
        return self

    def __exit__(self, *error: object) -> None:
        for server in self._servers:
            server.kill()
        self._learner.kill()

    def measure(self, attack: str, connections: int, core: int) -> Row:
        settings = self._settings
        source = "127.0.0.1" if settings.own_address else "127.0.0.2"
        arguments = (attack, self._learner.address, source, connections, self._ca, core)
        before = self._steps_per_s(settings.seconds)
        lost_before, memory = self._streams_lost(), _Memory(self._learner.pid)
        with memory:
            with attackers.attacking(*arguments) as num_ended:
                time.sleep(0.5)
                ended_before = num_ended()
                beneath = self._steps_per_s(settings.seconds)
                ended = num_ended() - ended_before
                rejoined_s = self._rejoin() if settings.restart else None
            recovered_s = self._recover(before)
        time.sleep(max(0.0, settings.after_seconds - recovered_s))
        later, lost = memory.now(), self._streams_lost() - lost_before
        with attackers.attacking(*arguments):
            time.sleep(1.0)
            began = time.monotonic()
            self._learner.terminate()
            sigterm_s = time.monotonic() - began
        return Row(
            attack=attack,
            connections=connections,
            before_steps_per_s=before,
            beneath_steps_per_s=beneath,
            ratio=beneath / before,
            ended_per_s=ended / settings.seconds,
            recovered_s=recovered_s,
            rejoined_s=rejoined_s,
            before_mib=memory.first,
            most_mib=memory.most,
            later_mib=later,
            streams_lost=lost,
            sigterm_s=sigterm_s,
        )

    def _rejoin(self) -> float:
        server, began = self._servers[-1], time.monotonic()
        server.start()
        self._learner.wait_until(lambda _: self._streams() > self._settings.servers)
        taken_s = time.monotonic() - began
        server.kill()
        return taken_s

    def _recover(self, before: float) -> float:
        began = time.monotonic()
        while time.monotonic() - began < self._settings.after_seconds:
            if self._steps_per_s(1.0) >= _RECOVERED * before:
                return time.monotonic() - began
        return float("inf")

    def _steps_per_s(self, seconds: float) -> float:
        first, began = self._learner.books()["steps_sampled"], time.monotonic()
        time.sleep(seconds)
        return (self._learner.books()["steps_sampled"] - first) / (time.monotonic() - began)

    def _streams(self) -> int:
        return self._number("kubebeast_streams ")

    def _streams_lost(self) -> int:
        return self._number("kubebeast_streams_accepted_total ") - self._number("kubebeast_streams ")

    def _number(self, start: str) -> int:
        (line,) = (line for line in self._learner.scrape().splitlines() if line.startswith(start))
        return int(float(line.split()[-1]))


class _Memory:
    """Resident memory of a process in MiB. A context manager: between enter and exit, it records the maximum."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.first = self.most = self.now()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def now(self) -> float:
        return float(self._process.memory_info().rss) / _MIB

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            self.most = max(self.most, self.now())


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__).scaled()
    rows = []
    for attack in settings.attacks:
        for connections in settings.connections:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(attack, connections, settings, Path(folder)))
            print(rows[-1], flush=True)
    report.print_table("attacks without a token", rows)
    name = f"attacks{'_tls' if settings.tls else ''}{'_own_address' if settings.own_address else ''}"
    name += "-quick" if settings.quick else ""
    print("Results:", report.write_json(name, settings, {"rows": rows}))


if __name__ == "__main__":
    main()
