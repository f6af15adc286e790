"""Efficiency of a training run on this machine: its speed compared with the floor that its pieces set.

    python -m benchmarks.train --seconds 30

The indispensable pieces are measured without anything between them, on one thread per core: stepping the environments,
running the model on batches of the size in the run, updating the model. The sum of their CPU times is the floor: a
machine with that many cores cannot train faster. Everything else (transport, batching, copies, waking up, Python) is
the rest.
"""

import dataclasses
import os
from typing import Literal

import tyro

from benchmarks import end_to_end, pieces, report


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 30.0
    """Length of the measured window of the run, and of the pieces, in seconds."""
    warmup_seconds: float = 10.0
    """Warm-up of the run after its first updates, in seconds."""
    command: Literal["train", "mono"] = "train"
    """Command of the run: `kubebeast train` with env-servers, or `kubebeast mono` with its own processes."""
    env: str = "PongNoFrameskip-v4"
    """Environment id."""
    num_actors: int = 64
    """Number of environments."""
    num_processes: int = 3
    """Processes that step the environments."""
    unroll_length: int = 20
    batch_size: int = 8
    model: str = "shallow"
    """Network, as in `kubebeast train`."""

    @property
    def flags(self) -> list[str]:
        """Flags of the command with these settings; all others are TorchBeast's, with one gradient step per batch."""
        names = ("env", "num_actors", "unroll_length", "batch_size", "model")
        processes = {"train": "num-servers", "mono": "num-actor-processes"}[self.command]
        return [
            "--recipe=torchbeast",
            f"--{processes}={self.num_processes}",
            *(f"--{name.replace('_', '-')}={getattr(self, name)}" for name in names),
        ]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    piece: str
    us_per_step: float
    """CPU time in microseconds."""
    percent: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    steps_per_s: float
    floor_steps_per_s: float
    percent_of_floor: float
    cores_used: float
    cores_used_by_others: float
    """Cores used by other processes; if it is far from 0, the results are unreliable."""
    rows_per_inference: float


def split(window: end_to_end.Window, floor: dict[str, float]) -> list[Share]:
    """Splits the run's CPU time per env-step into the pieces and an unexplained rest."""
    total = window.cpu_us_per_step
    parts = {**floor, "rest": total - sum(floor.values()), "total": total}
    return [Share(piece=name, us_per_step=us, percent=us / total * 100) for name, us in parts.items()]


def summarize(window: end_to_end.Window, floor: dict[str, float], num_cores: int) -> Summary:
    floor_steps_per_s = num_cores / sum(floor.values()) * 1e6
    return Summary(
        steps_per_s=window.steps_per_s,
        floor_steps_per_s=floor_steps_per_s,
        percent_of_floor=window.steps_per_s / floor_steps_per_s * 100,
        cores_used=window.cores_used,
        cores_used_by_others=window.cores_used_by_others,
        rows_per_inference=window.rows_per_inference,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    window = end_to_end.measure(
        settings.command, settings.flags, warmup_seconds=settings.warmup_seconds, seconds=settings.seconds
    )
    load = pieces.Load(
        env=settings.env,
        num_envs=settings.num_actors // settings.num_processes,
        num_rows=round(window.rows_per_inference),
        unroll_length=settings.unroll_length,
        batch_size=settings.batch_size,
        model=settings.model,
    )
    floor = pieces.measure_all(load, settings.seconds)
    shares = split(window, floor)
    summary = summarize(window, floor, len(os.sched_getaffinity(0)))
    report.print_table(
        f"kubebeast {settings.command}, {settings.env}, {settings.model}: CPU time of an env-step", shares
    )
    report.print_table("whole run against the floor", [summary])
    results = {"window": window, "shares": shares, "summary": summary}
    print("Results:", report.write_json(settings.command, settings, results))


if __name__ == "__main__":
    main()
