"""Picture of a measurement over time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.scale.summary import Summary

mpl.use("Agg")
from matplotlib import pyplot as plt


def draw(seconds: Sequence[Mapping[str, Any]], summary: Summary, path: Path) -> None:
    """Draws throughput, age of the data and memory for every second."""
    figure, (speed, age, memory) = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
    times = [each["second"] for each in seconds]
    speed.plot(times, [each["steps_per_s"] for each in seconds])
    speed.axhline(summary.steps_per_s / 2, linestyle=":", color="grey", label="half of the mean")
    speed.set(ylabel="env-steps/s", ylim=(0, None), title=f"{summary.streams:,} streams, {summary.envs:,} environments")
    age.plot(times, [each["lag_mean"] for each in seconds], label="mean")
    age.plot(times, [each["lag_max"] for each in seconds], label="oldest")
    age.axhline(summary.lag_bound, linestyle=":", color="grey", label="queue capacity and one stream")
    age.set(ylabel="policy lag in updates", ylim=(0, None))
    memory.plot(times, [each["rss_mib"] for each in seconds], label="RSS")
    memory.axhline(summary.calculated_mib, linestyle=":", color="grey", label="calculated")
    memory.set(ylabel="MiB of the learner", xlabel="seconds", ylim=(0, None))
    for axes in (speed, age, memory):
        axes.legend(frameon=False, loc="lower right")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
