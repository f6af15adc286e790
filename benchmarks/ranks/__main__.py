"""Benefit of a second learner: throughput of two ranks over one, and the cost of their communication.

    python -m benchmarks.ranks --picture docs/images/ranks-trace.png

Every rank has a dedicated core and computes with one thread; sums go over Gloo and the loopback device. `updates`
measures updates with batches that are always ready. `trainings` measures complete learners with null environments, with
env-servers and inference on the rank's core; trainings with one and with two ranks alternate.
"""

import contextlib
import dataclasses
import json
import os
import statistics
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import tyro

from benchmarks import report
from benchmarks.ranks import trace
from benchmarks.ranks.updates import NULL_ENV
from harness.ports import free_ports
from harness.processes.env_server import EnvServer
from harness.processes.rank_process import outputs, start_ranks
from kubebeast_observe.scrape import parse_metrics

START_S = 60.0
"""Timeout of the first updates of a training."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 8.0
    """Length of each measurement, in seconds."""
    rounds: int = 2
    """Trainings of each number of ranks."""
    num_ranks: int = 2
    """Number of ranks; if there are fewer cores than ranks, they share them."""
    model: str = "shallow"
    """Network, on 84 x 84 frames in stacks of 4."""
    unroll_length: int = 80
    batch_size: int = 8
    """Batch size of each rank."""
    num_envs: int = 32
    """Environments of each rank."""
    picture: Path | None = None
    """File for a picture of one update of several ranks."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    what: str
    one_rank_steps_per_s: float
    all_ranks_steps_per_s: float
    ratio: float
    """Ratio of the two; at best the number of ranks."""


def measure_updates(settings: Settings, num_ranks: int, folder: Path) -> dict[str, float]:
    """Measures the updates of the first rank, which writes its trace to the folder; all ranks are equally fast."""
    words = [settings.seconds, settings.model, settings.unroll_length, settings.batch_size]
    outputs(start_ranks(num_ranks, "benchmarks.ranks.updates", str(folder), *map(str, words)))
    result: dict[str, float] = json.loads((folder / f"{num_ranks}-0.json").read_text())
    return result


def measure_training(settings: Settings, num_ranks: int, folder: Path) -> float:
    """Returns the env-steps per second of all ranks together."""
    with training(settings, num_ranks, folder) as http_port:
        deadline = time.monotonic() + START_S
        while steps(http_port) < 2 * num_ranks * settings.unroll_length * settings.batch_size:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{num_ranks} learners have not trained within {START_S:.0f} s")
            time.sleep(0.5)
        before, since = steps(http_port), time.monotonic()
        time.sleep(settings.seconds)
        return (steps(http_port) - before) / (time.monotonic() - since)


@contextlib.contextmanager
def training(settings: Settings, num_ranks: int, folder: Path) -> Iterator[int]:
    """Runs learners with an env-server each, on the same core; yields the HTTP port of the first learner."""
    port, http_port, cores = free_ports(num_ranks), free_ports(num_ranks), sorted(os.sched_getaffinity(0))
    flags = ["--recipe=torchbeast", f"--model={settings.model}", "--compile=off"]
    flags += [f"--unroll-length={settings.unroll_length}"]
    flags += [f"--batch-size={settings.batch_size}", f"--address=127.0.0.1:{port}", "--learner-threads=1"]
    flags += [f"--http-address=127.0.0.1:{http_port}", f"--savedir={folder}", f"--xpid=ranks-{num_ranks}"]
    flags += ["--disable-checkpoint", "--progress=none", "--log-level=error", "--total-steps=1000000000"]
    with contextlib.ExitStack() as stack:
        for rank, process in enumerate(start_ranks(num_ranks, "kubebeast_learner", "learner", *flags)):
            stack.callback(process.wait)
            stack.callback(process.kill)
            core = cores[rank % len(cores)]
            psutil.Process(process.pid).cpu_affinity([core])
            server = EnvServer(rank, f"127.0.0.1:{port + rank}", folder, num_envs=settings.num_envs, env=NULL_ENV)
            stack.enter_context(server)
            psutil.Process(server.pid).cpu_affinity([core])
        yield http_port


def steps(http_port: int) -> int:
    """Returns the env-steps that all ranks have trained on; 0 before the learner answers."""
    with (
        contextlib.suppress(urllib.error.URLError),
        urllib.request.urlopen(f"http://127.0.0.1:{http_port}/metrics", timeout=START_S) as answer,
    ):
        return parse_metrics(answer.read().decode()).count("kubebeast_learner_step") or 0
    return 0


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    load, num_ranks = os.getloadavg()[0], settings.num_ranks
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        updates = {number: measure_updates(settings, number, folder) for number in (1, num_ranks)}
        traced = trace.updates(folder / "trace.json")
        rounds = [
            {number: measure_training(settings, number, folder) for number in (1, num_ranks)}
            for _ in range(settings.rounds)
        ]
    batch = settings.unroll_length * settings.batch_size
    speeds = [number * batch / updates[number]["update_s"] for number in (1, num_ranks)]
    throughput = [
        Throughput(
            what="updates",
            one_rank_steps_per_s=speeds[0],
            all_ranks_steps_per_s=speeds[1],
            ratio=speeds[1] / speeds[0],
        ),
        Throughput(
            what="trainings",
            one_rank_steps_per_s=statistics.median(each[1] for each in rounds),
            all_ranks_steps_per_s=statistics.median(each[num_ranks] for each in rounds),
            ratio=statistics.median(each[num_ranks] / each[1] for each in rounds),
        ),
    ]
    communication = trace.communication(traced)
    gradient_mib = updates[num_ranks]["gradient_mib"]
    report.print_table(f"{num_ranks} ranks of one core each; load before {load:.1f}", throughput)
    report.print_table(f"Sums over ranks in an update, {gradient_mib:.1f} MiB of gradients", [communication])
    if settings.picture is not None:
        trace.draw(traced, settings.picture, f"{num_ranks} ranks, {settings.model}, Gloo over loopback")
    results = {"throughput": throughput, "communication": communication, "rounds": rounds, "load_before": load}
    print("Results:", report.write_json("ranks", settings, results | {"gradient_mib": gradient_mib}))


if __name__ == "__main__":
    main()
