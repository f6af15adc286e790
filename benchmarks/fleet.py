"""Env-servers as processes around a real learner: how many there are, and how long each was away.

Their environments sleep through most of a step, as an emulator on a core of its own would keep its core busy: the
fleet's throughput follows the number of env-servers, and this machine's cores have time to spare.
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
    """Places 0 .. size-1 are filled. Between enter and exit; leaving kills what is left."""

    def __init__(
        self,
        address: str,
        folder: Path,
        *flags: str,
        num_envs: int,
        env: str = serial_env.ENV_ID,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """As EnvServer."""
        self.servers: list[EnvServer] = []
        """Of every place that was ever filled."""
        self.size = 0
        self.starts: list[tuple[int, float]] = []
        """Place and moment of every start of a process, by time.monotonic."""
        self.kills: list[tuple[int, float]] = []
        """Place and moment of every SIGKILL."""
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
        """As `kubectl scale`: starts processes, or ends the last ones by SIGTERM; returns the statuses of these."""
        while len(self.servers) < size:
            self.servers.append(self._make_server(len(self.servers)))
        for place in range(self.size, size):
            self._start(place)
        statuses = [self.servers[place].terminate() for place in range(size, self.size)]
        self.size = size
        return statuses

    def kill(self, place: int) -> None:
        """SIGKILL, and a new process at once, as Kubernetes fills the place of a pod."""
        self.servers[place].kill()
        self.kills.append((place, time.monotonic()))
        self._start(place)

    def away_s(self, until: float) -> float:
        """Seconds that killed places went without an env-step, up to a moment, all together."""
        lives = first_steps(self._folder)
        total = 0.0
        for number, (place, moment) in enumerate(self.kills):
            ends = [first for other, first in lives if other == place and first > moment]
            again = [later for other, later in self.kills[number + 1 :] if other == place]
            total += max(0.0, min([until, *ends, *again]) - moment)
        return total

    def contribution_s(self) -> list[float]:
        """For every start of a process that came to it: seconds until its first env-step."""
        lives = first_steps(self._folder)
        delays = []
        for number, (place, moment) in enumerate(self.starts):
            until = min((later for other, later in self.starts[number + 1 :] if other == place), default=math.inf)
            steps = [first for other, first in lives if other == place and moment < first < until]
            delays += [first - moment for first in sorted(steps)[:1]]
        return delays

    def away_share(self, since: float, until: float) -> float:
        """Share of a time, between two moments by time.monotonic, in which environments of serial rows did not play.

        An environment plays from its first step to its last; the fleet has its present size all the time.
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
    """Where every env-step of a run on serial environments has gone."""

    stepped: int
    """Taken by the environments, by their own count."""
    sampled: int
    """Of them, by the learner's books: their outcome arrived."""
    lost: int
    """stepped - sampled: under way when a process was killed or a connection ended."""
    trained: int
    """Different env-steps in the batches that the learner was trained on."""
    duplicated: int
    torn: int
    """In these batches: env-steps that came before, and pairs of rows that do not belong together."""
    dropped: int
    in_flight: int
    """sampled, and neither delivered nor dropped yet."""
    imbalance: int
    """Env-steps that the books have lost sight of."""


def settle(learner: LearnerProcess, folder: Path) -> Account:
    """The account of a run whose env-servers have ended, while its only learner still lives."""
    books = learner.books()
    stepped = int(serial_env.accounts(folder)["decisions"].sum())
    tally = serials.tally(witness.testimony(folder))
    return Account(
        stepped=stepped,
        sampled=books["steps_sampled"],
        lost=stepped - books["steps_sampled"],
        trained=tally.delivered,
        duplicated=tally.duplicated,
        torn=tally.torn,
        dropped=sum(count for name, count in books.items() if name.startswith("steps_dropped_")),
        in_flight=books["steps_in_flight"],
        imbalance=imbalance(books),
    )


def first_steps(folder: Path) -> list[tuple[int, float]]:
    """Place and moment, by time.monotonic, of every environment's first step."""
    accounts = serial_env.accounts(folder)
    began = accounts[accounts["first_ns"] > 0]
    return [(int(each["place"]), float(each["first_ns"]) / 1e9) for each in began]


def draw_kills(generator: random.Random, num_servers: int, share: float, interval_s: float) -> list[tuple[float, int]]:
    """Moments within an interval, in seconds, and the places killed then: at least `share` of them, each once."""
    places = generator.sample(range(num_servers), math.ceil(share * num_servers))
    return sorted((generator.uniform(0.0, interval_s), place) for place in places)
