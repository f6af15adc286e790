"""Sequences of random faults: a storm is drawn from a seed and can be replayed by it."""

import contextlib
import enum
import logging
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.processes.env_server import REFUSED, EnvServer
from tests.integration.chaos.proxy import FaultyProxy

logger = logging.getLogger(__name__)


class Fault(enum.Enum):
    """Faults of an env-server or its network; each lasts until it is healed."""

    KILL = "SIGKILL, then a new process"
    STOP = "SIGSTOP, then SIGCONT"
    RESTART = "SIGTERM, then a new process"
    CUT = "no connection lives"
    STALL = "connections carry nothing"
    SLOW = "connections carry little, and late"
    CORRUPT = "connections change bytes"


@dataclass(frozen=True, slots=True)
class Event:
    fault: Fault
    place: int
    heals: bool
    """True if the fault ends, False if it begins."""


def draw(seed: int, num_places: int, num_faults: int, faults: Iterable[Fault] = Fault) -> list[Event]:
    """Draws strikes and heals in order: one fault per place at a time, and none at the end.

    At least one place is always healthy, so that there is progress to measure by.
    """
    generator, kinds = random.Random(seed), list(faults)
    events: list[Event] = []
    suffering: dict[int, Fault] = {}
    num_left = num_faults
    while num_left or suffering:
        can_strike = num_left > 0 and len(suffering) < num_places - 1
        if can_strike and (not suffering or generator.random() < 0.5):
            place = generator.choice([place for place in range(num_places) if place not in suffering])
            suffering[place] = generator.choice(kinds)
            events.append(Event(suffering[place], place, heals=False))
            num_left -= 1
        else:
            place = generator.choice(sorted(suffering))
            events.append(Event(suffering.pop(place), place, heals=True))
    return events


class Target:
    """An env-server and the network before it, under fire."""

    def __init__(self, server: EnvServer, proxy: FaultyProxy) -> None:
        self.server = server
        self._proxy = proxy

    def strike(self, fault: Fault) -> None:
        match fault:
            case Fault.KILL:
                self.server.kill()
            case Fault.STOP:
                self.server.freeze()
            case Fault.RESTART:
                had_begun = self.server.has_logged
                status = self.server.terminate()
                # A process that is still importing dies of the signal. Its first log line comes after it handles
                # signals.
                died_unborn = status == -signal.SIGTERM and not had_begun
                assert status == 0 or died_unborn, f"asked to end, place {self.server.place} exited with {status}"
            case Fault.CUT:
                self._proxy.cut()
            case Fault.STALL:
                self._proxy.stall()
            case Fault.SLOW:
                self._proxy.slow_down(delay_s=0.02, bytes_per_s=20_000)
            case Fault.CORRUPT:
                self._proxy.corrupt(seed=self.server.place)

    def heal(self, fault: Fault) -> None:
        match fault:
            case Fault.KILL | Fault.RESTART:
                self.server.start()
            case Fault.STOP:
                self.server.thaw()
            case Fault.CUT | Fault.STALL | Fault.SLOW | Fault.CORRUPT:
                self._proxy.heal()
                self.start_if_refused()

    def start_if_refused(self) -> None:
        """Starts the env-server if a changed message looked to it like a final breach of the contract."""
        if self.server.exit_status() == REFUSED:
            self.server.start()


@contextlib.contextmanager
def fleet(address: str, folder: Path, num_places: int, num_envs: int, *, env_ms: float = 0.0) -> Iterator[list[Target]]:
    """Starts env-servers that dial `address`, a proxy before each. env_ms: time that a step sleeps."""
    with contextlib.ExitStack() as stack:
        targets = []
        for place in range(num_places):
            proxy = stack.enter_context(FaultyProxy(address))
            server = EnvServer(place, proxy.address, folder, num_envs=num_envs, env_kwargs={"env_ms": env_ms})
            stack.enter_context(server)
            targets.append(Target(server, proxy))
        yield targets


def unleash(events: Sequence[Event], targets: Sequence[Target], wait_for_progress: Callable[[], None]) -> None:
    """Applies the events one by one, each after some progress: training continues whichever are broken."""

    def go_on() -> None:
        wait_for_progress()
        for target in targets:
            target.start_if_refused()

    for number, event in enumerate(events, start=1):
        go_on()
        verb = "ends" if event.heals else "strikes"
        logger.info("event %d of %d: %s %s place %d", number, len(events), event.fault.name, verb, event.place)
        target = targets[event.place]
        if event.heals:
            target.heal(event.fault)
        else:
            target.strike(event.fault)
    go_on()
