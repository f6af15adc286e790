"""Both halves, a real learner and real env-servers, and checks that the records of each agree with the other's.

Nothing here sleeps: waits check their condition at every progress line of the learner.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from harness.chaos import books, serial_env, serials, witness
from harness.ports import free_port
from harness.processes.learner_process import LearnerProcess
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from tests.system import environments, peers
from tests.system.host import Host, read_metrics

STEP_TIMEOUT_S = 5
"""Step timeout of the learner for a stream's environments."""
TRAINING_FLAGS = (*witness.FLAGS, "--unroll-length=5", "--batch-size=4", "--log-interval-s=0.2")
LEARNER_FLAGS = (
    *TRAINING_FLAGS,
    "--max-offences=0",  # all peers of a test have one host
    f"--step-timeout-s={STEP_TIMEOUT_S}",
)


class Halves:
    """A learner that trains whatever its env-servers do; one of these, the neighbor, is always healthy."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        frames: int = 1,
        token_file: Path | None = None,
        env_ms: float = environments.ENV_MS,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """flags, variables: further flags of the learner, and variables of its process. frames: in the environments'
        stacks.

        token_file, env_ms: token of the neighbor, and duration of its steps.
        """
        self.dialed_address = f"127.0.0.1:{free_port()}"
        """Address that the learner dials to reach a listening env-server."""
        self.learner = LearnerProcess(
            folder, *LEARNER_FLAGS, f"--dial={self.dialed_address}", *flags, variables=variables, warm=True
        )
        self._folder = folder
        self._frames = frames
        self._numbers = itertools.count()
        self.neighbour = self.host(*([f"--token-file={token_file}"] if token_file else []), num_envs=2, env_ms=env_ms)
        """An env-server that is always healthy."""

    def __enter__(self) -> Self:
        self.learner.start()
        self.learner.wait_listening()
        self.neighbour.start()
        self.wait_until(lambda: self.learner.newest["step"] > 0)
        return self

    def __exit__(self, *error: object) -> None:
        self.neighbour.kill()
        self.learner.kill()

    def host(
        self,
        *flags: str,
        listens: bool = False,
        version: tuple[int, int] = (PROTOCOL_VERSION, PROTOCOL_MINOR),
        variables: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Host:
        """Returns a further env-server, not yet started. listens: the learner dials it. version: major and minor
        version of its contract. settings: arguments of Host.
        """
        major, minor = version
        variables = {
            peers.FRAME_STACK: str(self._frames),
            peers.MAJOR: str(major),
            peers.MINOR: str(minor),
            **(variables or {}),
        }
        folder = self._folder / f"host-{next(self._numbers)}"
        if listens:
            return Host(folder, "", f"--listen={self.dialed_address}", *flags, variables=variables, **settings)
        return Host(folder, self.learner.address, *flags, variables=variables, **settings)

    def wait_until(self, condition: Callable[[], bool], *hosts: Host) -> None:
        """Checks the condition at every progress line; raises AssertionError if one of `hosts` has ended.

        It has no limit of its own, which would depend on the machine: the limit of the learner's waits ends a hang.
        """

        def is_met(_: object) -> bool:
            if condition():
                return True
            assert all(host.pid is not None for host in hosts), "an env-server has ended"
            return False

        try:
            self.learner.wait_until(is_met)
        except AssertionError as error:
            error.add_note("\n".join(host.log_path.read_text()[-3000:] for host in hosts))
            raise

    @contextlib.contextmanager
    def nobody_else_suffers(self) -> Iterator[None]:
        """Asserts that the learner lives, logs no error and trains on the neighbor's rows, and that its books
        balance.
        """
        if not self.learner.is_running:  # another test's failure does not count here
            self.learner.start()
        num_errors = len(self.learner.errors())
        yield
        before = self.neighbour.decisions()
        self.wait_until(lambda: all(count > before[env] + 10 for env, count in self.neighbour.decisions().items()))
        assert self.learner.is_running and len(self.learner.errors()) == num_errors
        assert self.neighbour.metrics()["connects_total/lost"] == 0
        assert books.imbalance(self.learner.books()) == 0
        tally = serials.tally(witness.testimony(self.learner.folder))
        assert (tally.torn, tally.duplicated, tally.unreadable) == (0, 0, 0)

    def metrics(self) -> dict[str, float]:
        """Returns the learner's metrics, as read_metrics."""
        return read_metrics(self.learner.http_address, "kubebeast_")

    def delivered(self, host: Host) -> int:
        """Returns the number of transitions of the host's environments that the learner was trained on."""
        instances = serial_env.accounts(host.folder)["instance"]
        lives = witness.testimony(self.learner.folder)
        return serials.tally([runs[np.isin(runs[:, 0], instances)] for runs in lives]).delivered
