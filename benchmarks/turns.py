"""Contenders that step environments in turns, so that drifts of the machine affect all of them."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import psutil

WARMUP_STEPS = 50


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    backend: str
    num_envs: int
    steps_per_s: float | None = None
    """Median over the rounds."""
    cpu_us_per_step: float | None = None
    """CPU time of all processes and threads; median."""
    ratio: float | None = None
    """Steps per second over the reference's in the same round; median."""
    ratio_lowest: float | None = None
    ratio_highest: float | None = None
    not_run: str = ""
    """Reason why it did not run."""


class Speed(NamedTuple):
    steps_per_s: float
    cpu_us_per_step: float


class Player:
    """One contender, which continues to play in each measurement."""

    def __init__(self, step: Callable[[], object], num_envs: int, seconds: float) -> None:
        """Creates a contender and warms it up.

        Args:
            step: Function that steps all num_envs environments once.
            seconds: Length of a measurement.
        """
        self._step, self._num_envs, self._seconds = step, num_envs, seconds
        for _ in range(WARMUP_STEPS):
            step()

    def measure(self) -> Speed:
        num_calls, cpu_s, started = 0, _cpu_s(), time.perf_counter()
        while time.perf_counter() - started < self._seconds:
            self._step()
            num_calls += 1
        num_steps = num_calls * self._num_envs
        return Speed(num_steps / (time.perf_counter() - started), (_cpu_s() - cpu_s) / num_steps * 1e6)


def _cpu_s() -> float:
    """Returns the CPU seconds of this process and its children; only one contender plays at a time."""
    this = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (this, *this.children(recursive=True)))


def compare(made: Mapping[str, Player | str], num_envs: int, num_rounds: int) -> list[Row]:
    """Measures the contenders in turns; the first one is the reference.

    Args:
        made: Player of each contender by name, or the reason why it cannot run.
    """
    playing = {name: player for name, player in made.items() if isinstance(player, Player)}
    rounds: list[dict[str, Speed]] = []
    for turn in range(num_rounds):
        order = list(playing) if turn % 2 == 0 else list(playing)[::-1]
        rounds.append({name: playing[name].measure() for name in order})
    reference = next(iter(made))
    return [
        Row(backend=name, num_envs=num_envs, not_run=player)
        if isinstance(player, str)
        else summary(name, num_envs, rounds, reference)
        for name, player in made.items()
    ]


def summary(name: str, num_envs: int, rounds: Sequence[dict[str, Speed]], reference: str) -> Row:
    """Summarizes the rounds of one contender, without ratios if the reference has not run."""
    speeds = [each[name] for each in rounds]
    ratios = [each[name].steps_per_s / each[reference].steps_per_s for each in rounds if reference in each]
    return Row(
        backend=name,
        num_envs=num_envs,
        steps_per_s=statistics.median(speed.steps_per_s for speed in speeds),
        cpu_us_per_step=statistics.median(speed.cpu_us_per_step for speed in speeds),
        ratio=statistics.median(ratios) if ratios else None,
        ratio_lowest=min(ratios, default=None),
        ratio_highest=max(ratios, default=None),
    )
