"""Samples of a real learner over time: throughput, streams, memory, file descriptors."""

import dataclasses
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import psutil

from harness.processes.learner_process import LearnerProcess

mpl.use("Agg")
from matplotlib import pyplot as plt

MIB = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    seconds: float
    """Time since the timeline began."""
    step: int
    """Trained steps, by the newest progress line."""
    streams: int
    rss_mib: float
    """Resident set size of the learner's process."""
    fds: int
    """Open file descriptors of the learner's process."""


class Timeline:
    """Samples of one learner, and the times of events."""

    def __init__(self, learner: LearnerProcess) -> None:
        self.began_at = time.monotonic()
        self.samples: list[Sample] = []
        self.events: list[tuple[float, str]] = []
        """Seconds since the beginning, and description, of each event."""
        self._learner = learner
        self._process = psutil.Process(learner.pid)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_at

    def note(self, what: str) -> None:
        self.events.append((self.seconds, what))

    def watch(self, seconds: float, interval_s: float = 1.0) -> None:
        """Takes samples for `seconds`, and blocks meanwhile; raises psutil.NoSuchProcess if the learner ends."""
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            time.sleep(min(interval_s, left_s))
            newest = self._learner.newest
            memory = self._process.memory_info().rss / MIB
            self.samples.append(
                Sample(self.seconds, newest.get("step", 0), newest.get("streams", 0), memory, self._process.num_fds())
            )

    def throughput(self, start_s: float, end_s: float) -> float:
        """Returns the trained steps per second between two times, from the first and last progress line between them.

        Raises:
            RuntimeError: If there are no two progress lines.
        """
        inside = [line for line in self._learner.history if start_s <= line.time_s - self.began_at <= end_s]
        if len(inside) < 2:
            raise RuntimeError(f"no two progress lines between {start_s:.0f} and {end_s:.0f} s")
        first, last = inside[0], inside[-1]
        return float(last.values["step"] - first.values["step"]) / (last.time_s - first.time_s)

    def trend(self, field: str, start_s: float) -> dict[str, float]:
        """Returns first, last and largest value and fitted slope per minute of a field of Sample from `start_s` on."""
        points = [(each.seconds / 60, float(getattr(each, field))) for each in self.samples if each.seconds >= start_s]
        minutes, values = np.array(points).T
        slope = float(np.polyfit(minutes, values, 1)[0])
        return {
            "first": values[0],
            "last": values[-1],
            "largest": float(values.max()),
            "slope_per_minute": round(slope, 4),
        }

    def draw(self, path: Path, title: str) -> None:
        """Draws four charts above each other against minutes, with events as vertical lines."""
        minutes = np.array([each.seconds / 60 for each in self.samples])
        steps = np.array([each.step for each in self.samples])
        window = max(1, min(10, len(minutes) - 1))
        rate = (steps[window:] - steps[:-window]) / (minutes[window:] - minutes[:-window]) / 60
        figure, axes = plt.subplots(4, 1, figsize=(10, 8), sharex=True, layout="constrained")
        curves = {
            "steps/s": rate,
            "streams": np.array([each.streams for each in self.samples[window:]]),
            "learner RSS, MiB": np.array([each.rss_mib for each in self.samples[window:]]),
            "learner fds": np.array([each.fds for each in self.samples[window:]]),
        }
        for chart, (label, values) in zip(axes, curves.items(), strict=True):
            chart.plot(minutes[window:], values)
            chart.set(ylabel=label, ylim=(0, 1.1 * max(values.max(), 1)))
            chart.grid(alpha=0.3)
            chart.spines[["top", "right"]].set_visible(False)
            for moment, _ in self.events:
                chart.axvline(moment / 60, color="tab:red", alpha=0.15, linewidth=1)
        axes[0].set_title(title, loc="left")
        axes[-1].set_xlabel("minutes")
        figure.savefig(path, dpi=120)
        plt.close(figure)
