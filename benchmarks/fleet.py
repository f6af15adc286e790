"""Env-servers as processes around a real learner, with their number and the times of their absence.

Their environments sleep for most of a step, like an emulator on a dedicated core would keep that core busy: the fleet's
throughput follows the number of env-servers, and this machine's cores are not saturated.
"""

import dataclasses
import math
import random
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from harness.chaos import serial_env, serials, witness
from harness.chaos.books import imbalance
from harness.processes.env_server import EnvServer
from harness.processes.learner_process import LearnerProcess

LEARNER_FLAGS = (*witness.FLAGS, "--unroll-length=20", "--batch-size=8", "--log-interval-s=1")


class Fleet:
    """A fleet with env-servers in places 0 .. size-1. A context manager: leaving kills those that are left."""

    def __init__(
        self,
        address: str,
        folder: Path,
        *flags: str,
        num_envs: int,
        env: str = serial_env.ENV_ID,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Creates an empty fleet; the arguments are those of EnvServer."""
        self.servers: list[EnvServer] = []
        """Env-servers of all places that were ever filled."""
        self.size = 0
        self.starts: list[tuple[int, float]] = []
        """Place and time of every start of a process, by time.monotonic."""
        self.kills: list[tuple[int, float]] = []
        """Place and time of every SIGKILL."""
        self.freezes: list[tuple[int, float, float]] = []
        """Place and the times of SIGSTOP and of SIGCONT, or of an earlier kill."""
        self._frozen: dict[int, float] = {}
        self._address, self._folder, self._flags = address, folder, flags
        self._num_envs, self._env, self._env_kwargs = num_envs, env, env_kwargs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.kill()

    def scale(self, size: int) -> list[int]:
        """Starts processes, or ends the last ones by SIGTERM and returns their exit statuses, like `kubectl scale`."""
        while len(self.servers) < size:
            self.servers.append(self._make_server(len(self.servers)))
        for place in range(self.size, size):
            self._start(place)
        statuses = [self.servers[place].terminate() for place in range(size, self.size)]
        self.size = size
        return statuses

    def kill(self, place: int) -> None:
        """Sends SIGKILL and starts a new process at once, like Kubernetes replaces a pod."""
        self._end_freeze(place)
        self.servers[place].kill()
        self.kills.append((place, time.monotonic()))
        self._start(place)

    def freeze(self, place: int) -> None:
        """Sends SIGSTOP, which resembles a disconnected node; does nothing if the place is frozen."""
        if place not in self._frozen:
            self.servers[place].freeze()
            self._frozen[place] = time.monotonic()

    def thaw(self, place: int) -> None:
        """Sends SIGCONT; does nothing if the place is not frozen."""
        if place in self._frozen:
            self.servers[place].thaw()
            self._end_freeze(place)

    def _end_freeze(self, place: int) -> None:
        if (since := self._frozen.pop(place, None)) is not None:
            self.freezes.append((place, since, time.monotonic()))

    def frozen_share(self, since: float, until: float) -> float:
        """Returns the share of an interval, by time.monotonic, in which environments were frozen."""
        frozen_s = sum(max(0.0, min(end, until) - max(begin, since)) for _, begin, end in self.freezes)
        return frozen_s / (self.size * (until - since))

    def away_s(self, until: float) -> float:
        """Returns the total seconds that killed places went without an env-step, up to `until`."""
        lives = first_steps(self._folder)
        total = 0.0
        for number, (place, moment) in enumerate(self.kills):
            ends = [first for other, first in lives if other == place and first > moment]
            again = [later for other, later in self.kills[number + 1 :] if other == place]
            total += max(0.0, min([until, *ends, *again]) - moment)
        return total

    def contribution_s(self) -> list[float]:
        """Returns the seconds from the start of each process to its first env-step, without those that had none."""
        lives = first_steps(self._folder)
        delays = []
        for number, (place, moment) in enumerate(self.starts):
            until = min((later for other, later in self.starts[number + 1 :] if other == place), default=math.inf)
            steps = [first for other, first in lives if other == place and moment < first < until]
            delays += [first - moment for first in sorted(steps)[:1]]
        return delays

    def away_share(self, since: float, until: float) -> float:
        """Returns the share of an interval, by time.monotonic, in which environments of serial rows did not play.

        An environment plays from its first step to its last; the fleet is assumed to have its current size throughout.
        """
        accounts = serial_env.accounts(self._folder)
        first_s, last_s = (accounts[name] / 1e9 for name in ("first_ns", "last_ns"))
        played_s = np.minimum(last_s, until) - np.maximum(first_s, since)
        total_s = self.size * self._num_envs * (until - since)
        return 1 - float(played_s.clip(0).sum()) / total_s

    def _make_server(self, place: int) -> EnvServer:
        return EnvServer(
            place,
            self._address,
            self._folder,
            *self._flags,
            num_envs=self._num_envs,
            env=self._env,
            env_kwargs=self._env_kwargs,
        )

    def _start(self, place: int) -> None:
        self.servers[place].start()
        self.starts.append((place, self.servers[place].started_at))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The outcomes of all env-steps of a run on serial environments."""

    stepped: int
    """Steps taken by the environments, by their own count."""
    sampled: int
    """Steps that arrived, by the learner's books."""
    lost: int
    """stepped - sampled: steps in transit when a process was killed or a connection ended."""
    trained: int
    """Distinct env-steps in the learner's training batches."""
    unreadable: int
    """Env-steps with a row that was changed on its way, or that an environment made unreadable."""
    duplicated: int
    torn: int
    """Repeated env-steps in these batches (duplicated), and pairs of rows that do not follow each other (torn)."""
    dropped: int
    in_flight: int
    """Sampled steps that are neither delivered nor dropped yet."""
    imbalance: int
    """Env-steps that the books do not account for."""


def settle(learner: LearnerProcess, folder: Path) -> Account:
    """Returns the account of a run after its env-servers have ended and while its only learner still runs."""
    books = learner.books()
    stepped = int(serial_env.accounts(folder)["decisions"].sum())
    tally = serials.tally(witness.testimony(folder))
    return Account(
        stepped=stepped,
        sampled=books["steps_sampled"],
        lost=stepped - books["steps_sampled"],
        trained=tally.delivered,
        unreadable=tally.unreadable,
        duplicated=tally.duplicated,
        torn=tally.torn,
        dropped=sum(count for name, count in books.items() if name.startswith("steps_dropped_")),
        in_flight=books["steps_in_flight"],
        imbalance=imbalance(books),
    )


def first_steps(folder: Path) -> list[tuple[int, float]]:
    """Returns place and time, by time.monotonic, of every environment's first step."""
    accounts = serial_env.accounts(folder)
    began = accounts[accounts["first_ns"] > 0]
    return [(int(each["place"]), float(each["first_ns"]) / 1e9) for each in began]


def draw_kills(generator: random.Random, num_servers: int, share: float, interval_s: float) -> list[tuple[float, int]]:
    """Draws times within an interval, in seconds, and places to kill: at least `share` of them, each once."""
    places = generator.sample(range(num_servers), math.ceil(share * num_servers))
    return sorted((generator.uniform(0.0, interval_s), place) for place in places)
