"""Every env-step of every rank is counted once in the steps of all, while env-servers and a rank are killed."""

import contextlib
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.chaos import books, serials, witness
from harness.ports import free_ports
from harness.processes.rank_training import Ranks
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, rows
from tests.integration.chaos import storm
from tests.integration.chaos.storm import Fault, Target

pytestmark = pytest.mark.slow

NUM_RANKS = 2
PLACES_EACH = 2
UNROLL_LENGTH, BATCH_SIZE = 5, 4
GLOBAL_BATCH = NUM_RANKS * UNROLL_LENGTH * BATCH_SIZE
STEPS_BETWEEN_EVENTS = 200
ENV_MS = 5.0
KILLS = (Fault.KILL, Fault.RESTART, Fault.STOP)
FLAGS = [
    *witness.FLAGS,
    f"--unroll-length={UNROLL_LENGTH}",
    f"--batch-size={BATCH_SIZE}",
    "--step-timeout-s=1",
    "--max-offences=0",  # all env-servers have one host
    "--linger",
]


class Ledger:
    """A run of several ranks, life after life, and the records of its ranks' witnesses and pools."""

    def __init__(self, folder: Path) -> None:
        self.port, self.http_port = free_ports(NUM_RANKS), free_ports(NUM_RANKS)
        self._folder = folder

    def ranks(self, total_steps: int) -> Ranks:
        addresses = [f"--http-address=127.0.0.1:{self.http_port}", f"--total-steps={total_steps}"]
        return Ranks(self._folder, NUM_RANKS, *FLAGS, *addresses, port=self.port)

    def trained(self, pids: list[int]) -> int:
        """Returns the env-steps in the batches that these processes were given to train on."""
        return serials.tally([witness.of_life(self._folder, pid) for pid in pids]).delivered

    def delivered(self) -> int:
        """Returns the env-steps that the pools of all ranks have handed over in this life; their books must balance."""
        of_ranks = [self._books(rank) for rank in range(NUM_RANKS)]
        assert [books.imbalance(stats) for stats in of_ranks] == [0] * NUM_RANKS
        return sum(stats["steps_delivered"] for stats in of_ranks)

    def written_step(self) -> int:
        """Returns the run's step, on which logs.csv and the newest checkpoint must agree."""
        step = int(rows(self._folder / "run")[-1]["step"])
        assert checkpoint_steps(self._folder / "run")[-1] == step
        return step

    def _books(self, rank: int) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port + rank}/metrics", timeout=TIMEOUT_S) as answer:
            return books.read_metrics(answer.read().decode())


@contextlib.contextmanager
def fleets(port: int, folder: Path) -> Iterator[list[Target]]:
    """Yields the env-servers of every rank, those of the ranks in turn."""
    with contextlib.ExitStack() as stack:
        of_ranks = []
        for rank in range(NUM_RANKS):
            (own := folder / f"fleet-{rank}").mkdir()
            fleet = storm.fleet(f"127.0.0.1:{port + rank}", own, PLACES_EACH, num_envs=2, env_ms=ENV_MS)
            of_ranks.append(stack.enter_context(fleet))
        yield [target for places in zip(*of_ranks, strict=True) for target in places]


def endure(seed: int, ranks: Ranks, targets: list[Target]) -> None:
    """Kills, restarts or freezes env-servers of all ranks at random; training continues after each."""

    def wait_for_progress() -> None:
        newest = next(line["step"] for line in reversed(ranks.lines) if line["message"] == "progress")
        ranks.wait_for_step(newest + STEPS_BETWEEN_EVENTS)

    storm.unleash(storm.draw(seed, len(targets), 4, KILLS), targets, wait_for_progress)


def test_steps_of_all_ranks_balance_while_env_servers_and_a_rank_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(witness.FOLDER, str(tmp_path))
    ledger = Ledger(tmp_path)
    with fleets(ledger.port, tmp_path) as targets:
        with ledger.ranks(total_steps=10**8) as ranks:
            ranks.wait_for_step(STEPS_BETWEEN_EVENTS)
            endure(1, ranks, targets)
            first_life = [worker.pid for worker in ranks.workers()]
            ranks.workers()[1].kill()
            line = ranks.wait_for_message(r"resuming .*checkpoint", len(ranks.lines))
            resumed = int(re.findall(r"at step (\d+) of", ranks.lines[line - 1]["message"])[0])
            ranks.wait_for_step(resumed + STEPS_BETWEEN_EVENTS, line)
            endure(2, ranks, targets)
            second_life = [worker.pid for worker in ranks.workers()]
            ranks.terminate()
        stopped = ledger.written_step()

        assert resumed <= ledger.trained(first_life) <= resumed + GLOBAL_BATCH
        assert ledger.trained(second_life) == stopped - resumed

        with ledger.ranks(total_steps=stopped + 10 * STEPS_BETWEEN_EVENTS) as ranks:
            targets[0].strike(Fault.KILL)
            ended = 0
            for _ in range(NUM_RANKS):
                ended = ranks.wait_for_message("trained to the end", ended)
            third_life = [worker.pid for worker in ranks.workers()]
            delivered = ledger.delivered()
            ranks.terminate()

    finished = ledger.written_step()
    assert delivered == ledger.trained(third_life) == finished - stopped
    tally = serials.tally(witness.testimony(tmp_path))
    assert (tally.duplicated, tally.torn, tally.unreadable) == (0, 0, 0)
