"""Cost of checkpoints in a bucket: the speed of a training that uploads them over its speed without.

    python -m benchmarks.checkpoint_uploads --num-checkpoints 10

One run saves a checkpoint every minute. Its speed in the seconds of an upload is compared with that of the seconds
around them, because the speed of a virtual machine differs by more from one minute to the next than by the cost of an
upload. The run has the last core to itself; the S3 server has the others, because its CPU time belongs to another
machine. The default model has checkpoints of 100 MB, and 34 MB of weights beside each.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import psutil
import tyro

from benchmarks import report
from harness.processes.s3_server import BUCKET, S3Server, serve_s3

URL = f"s3://{BUCKET}/runs"
CORES = sorted(os.sched_getaffinity(0))
ROW_S = 0.05
"""Time between the rows of a log, if an update is not slower."""
BEFORE_S, AFTER_S = 8.0, 2.0
"""Seconds before and after the end of an upload in which all of its cost falls."""
AROUND_S = 20.0
"""Seconds before and after these in which nothing is uploaded."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    num_checkpoints: int = 10
    warmup_seconds: float = 30.0
    interval_s: float = 60.0
    """Time between checkpoints, in seconds."""
    hidden_sizes: tuple[int, ...] = (2048, 2048)
    num_actors: int = 16


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    steps_per_s: float
    """In the seconds of the upload."""
    steps_per_s_around: float
    cpu_ratio: float
    """CPU time per step around the upload over that during it."""
    mb_per_checkpoint: float
    """Without the weights beside it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    ratio: float
    """Steps per second with an upload in each interval over those without; median over the uploads."""
    lower_quartile: float
    upper_quartile: float
    steps_per_s: float
    """Without uploads."""


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """End of an update."""

    time_s: float
    step: int
    cpu_s: float
    """CPU time of the run's processes until then."""
    checkpoint_time_s: float | None
    checkpoint_bytes: int


@contextlib.contextmanager
def training(settings: Settings, server: S3Server) -> Iterator[subprocess.Popen[str]]:
    """Starts a run on a core of its own. Its output has a JSON object for each row of its log."""
    flags = ["--env=CartPole-v1", f"--num-actors={settings.num_actors}", "--num-actor-processes=1"]
    flags += ["--unroll-length=20", "--batch-size=8", "--passes=1", "--minibatches=1", "--learner-threads=1"]
    flags += ["--total-steps=1000000000", "--hidden-sizes", *map(str, settings.hidden_sizes)]
    flags += ["--progress=json", f"--log-interval-s={ROW_S}", f"--savedir={URL}", f"--xpid={time.time_ns()}"]
    flags += [f"--checkpoint-interval-minutes={settings.interval_s / 60}"]
    command = ["taskset", "--cpu-list", str(CORES[-1]), sys.executable, "-m", "kubebeast_learner", "mono", *flags]
    environment = os.environ | server.environment | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate()


def measure(settings: Settings, server: S3Server) -> Generator[Upload, None, None]:
    """Yields the uploads of a run after its warm-up."""
    with training(settings, server) as process:
        moments: list[Moment] = []
        for moment in _moments(process):
            if moment.time_s < settings.warmup_seconds:
                continue
            moments.append(moment)
            ends = _ends_of_uploads(moments)
            if ends and moment.time_s >= ends[0] + AFTER_S + AROUND_S:
                if moments[0].time_s <= ends[0] - BEFORE_S - AROUND_S:
                    yield compare(moments, ends[0])
                moments = [each for each in moments if each.time_s > ends[0]]


def compare(moments: Sequence[Moment], end_s: float) -> Upload:
    """Compares the seconds of the upload that ended at `end_s` with those around it."""
    first_s, last_s = end_s - BEFORE_S, end_s + AFTER_S
    during = _spent(moments, first_s, last_s)
    around = [_spent(moments, first_s - AROUND_S, first_s), _spent(moments, last_s, last_s + AROUND_S)]
    seconds, steps, cpu_s = (sum(values) for values in zip(*around, strict=True))
    return Upload(
        steps_per_s=during[1] / during[0],
        steps_per_s_around=steps / seconds,
        cpu_ratio=(cpu_s / steps) / (during[2] / during[1]),
        mb_per_checkpoint=moments[-1].checkpoint_bytes / 1e6,
    )


def _spent(moments: Sequence[Moment], first_s: float, last_s: float) -> tuple[float, float, float]:
    """Returns seconds, steps and CPU seconds between the last updates before two times."""
    first = max((each for each in moments if each.time_s <= first_s), key=lambda each: each.time_s)
    last = max((each for each in moments if each.time_s <= last_s), key=lambda each: each.time_s)
    return last.time_s - first.time_s, float(last.step - first.step), last.cpu_s - first.cpu_s


def _ends_of_uploads(moments: Sequence[Moment]) -> list[float]:
    """Returns the times at which uploads have ended, in order."""
    pairs = itertools.pairwise(moments)
    return [now.time_s for before, now in pairs if now.checkpoint_time_s != before.checkpoint_time_s]


def _moments(process: subprocess.Popen[str]) -> Iterator[Moment]:
    for row in _rows(process):
        bytes_ = row["checkpoint_bytes"] or 0
        yield Moment(row["elapsed_s"], row["step"], _cpu_s(process.pid), row["checkpoint_time_s"], bytes_)


def _rows(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yields the rows that end with an update."""
    assert process.stdout is not None
    num_updates = 0
    for line in process.stdout:
        row = json.loads(line)
        if row.get("message") == "progress" and row["num_updates"] > num_updates:
            num_updates = row["num_updates"]
            yield row
    raise RuntimeError("the run has ended")


def _cpu_s(pid: int) -> float:
    """Returns the CPU seconds of a run's processes."""
    process = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children(recursive=True)))


def summarize(uploads: Sequence[Upload], interval_s: float) -> Summary:
    share = (BEFORE_S + AFTER_S) / interval_s
    ratios = [1 - share * (1 - each.steps_per_s / each.steps_per_s_around) for each in uploads]
    lower, median, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    around = statistics.median(each.steps_per_s_around for each in uploads)
    return Summary(ratio=median, lower_quartile=lower, upper_quartile=upper, steps_per_s=around)


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    uploads: list[Upload] = []
    os.sched_setaffinity(0, CORES[:-1])
    with serve_s3() as server, contextlib.closing(measure(settings, server)) as measured:
        for upload in itertools.islice(measured, settings.num_checkpoints):
            uploads.append(upload)
            print(upload, flush=True)
    os.sched_setaffinity(0, CORES)
    summary = summarize(uploads, settings.interval_s)
    report.print_table("Uploads", uploads)
    report.print_table(f"A checkpoint every {settings.interval_s:g} s", [summary])
    print("Results:", report.write_json("checkpoint_uploads", settings, {"uploads": uploads, "summary": summary}))


if __name__ == "__main__":
    main()
