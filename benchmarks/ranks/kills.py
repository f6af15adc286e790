"""A training with a rank that is killed repeatedly: time until all ranks train again, and steps that were lost.

    python -m benchmarks.ranks.kills --kills 10

Several learners under torchrun play CartPole with an env-server each, which is left alone. A random rank gets SIGKILL
at a random moment; torchrun restarts all ranks, and they resume from the newest checkpoint.
"""

import contextlib
import dataclasses
import json
import random
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path

import tyro

from benchmarks import report
from harness.ports import free_ports
from harness.processes.rank_training import EnvServer, Ranks
from harness.processes.training_process import TIMEOUT_S

POLL_S = 0.1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    kills: int = 10
    """Number of kills."""
    ranks: int = 2
    """Number of learners, each with its own env-server."""
    longest_rest_s: float = 5.0
    """Maximum of the random time between a saved checkpoint and the next kill, in seconds."""
    seed: int = 1
    """Seed of the random ranks and moments."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    number: int
    rank: int
    step: int
    """Newest step that was reported before the kill."""
    resumed_step: int
    training_again_s: float
    """Time from the kill until the first update after it is reported and every rank has its env-server again."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    shortest_s: float
    median_s: float
    longest_s: float
    same_env_servers: bool
    """True if every env-server process is the same at the beginning and the end."""


def num_streams(port: int) -> int:
    """Returns the number of streams of the rank that serves HTTP on the port; 0 if none does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/streams", timeout=TIMEOUT_S) as page:
            return len(json.load(page)["streams"])
    except OSError:
        return 0


def kill(ranks: Ranks, rank: int, number: int, http_port: int, num_ranks: int) -> Kill:
    """Kills one rank, and returns as soon as all train again."""
    seen = len(ranks.lines)
    step = max(line["step"] for line in ranks.lines[:seen] if line["message"] == "progress")
    killed_at = time.monotonic()
    ranks.workers()[rank].kill()
    seen = ranks.wait_for_message("resuming .*checkpoint", seen)
    resumed = int(ranks.lines[seen - 1]["message"].split(" at step ")[1].split()[0])
    ranks.wait_for_step(resumed + 1, seen)
    while not all(num_streams(http_port + each) for each in range(num_ranks)):
        time.sleep(POLL_S)
    return Kill(
        number=number, rank=rank, step=step, resumed_step=resumed, training_again_s=time.monotonic() - killed_at
    )


def measure(settings: Settings, folder: Path) -> tuple[list[Kill], Summary]:
    drawn, http_port = random.Random(settings.seed), free_ports(settings.ranks)
    kills: list[Kill] = []
    with contextlib.ExitStack() as stack:
        flags = ("--total-steps=100000000", f"--http-address=127.0.0.1:{http_port}")
        ranks = stack.enter_context(Ranks(folder, settings.ranks, *flags))
        servers = [stack.enter_context(EnvServer(ranks.port + index)) for index in range(settings.ranks)]
        seen = 0
        for number in range(1, settings.kills + 1):
            seen = ranks.wait_for_message("saved .*checkpoint", seen)
            time.sleep(drawn.uniform(0, settings.longest_rest_s))
            kills.append(kill(ranks, drawn.randrange(settings.ranks), number, http_port, settings.ranks))
            print(f"kill {number} of {settings.kills}: all train again after {kills[-1].training_again_s:.1f} s")
            seen = len(ranks.lines)
        same = all(server.process.poll() is None for server in servers)
    times = [each.training_again_s for each in kills]
    return kills, Summary(
        shortest_s=min(times), median_s=statistics.median(times), longest_s=max(times), same_env_servers=same
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        kills, summary = measure(settings, Path(folder))
    report.print_table(f"{settings.ranks} ranks, one of them killed", kills)
    report.print_table("until all train again", [summary])
    print("Results:", report.write_json(f"rank_kills_{settings.ranks}", settings, {"kills": kills, "summary": summary}))


if __name__ == "__main__":
    main()
