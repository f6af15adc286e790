"""Memory of a long run over time: samples the memory of its processes, and draws it.

python -m benchmarks.memory sample --pid 4711 --out docs/results/memory-train.csv
python -m benchmarks.memory draw docs/results/memory-*.csv --out docs/results/memory.png
"""

import contextlib
import csv
import time
from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import psutil
import tyro

mpl.use("Agg")
from matplotlib import pyplot as plt

COLUMNS = ("seconds", "processes", "pss_mib", "main_rss_mib")
MIB = 1 << 20


def sample(pid: int, out: Path, interval_s: float = 15.0) -> None:
    """Writes a row every `interval_s` seconds until process `pid` ends.

    pss_mib: proportional set size of the process and all its descendants, shared pages divided among them (proc(5)).
    main_rss_mib: resident set size of the process alone.
    """
    started_at = time.monotonic()
    process = psutil.Process(pid)
    with out.open("w", newline="") as file, contextlib.suppress(psutil.NoSuchProcess):
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        while True:
            sizes = [size for each in (process, *process.children(recursive=True)) if (size := _pss(each)) is not None]
            row = (time.monotonic() - started_at, len(sizes), sum(sizes) / MIB, process.memory_info().rss / MIB)
            writer.writerow([round(value, 1) for value in row])
            file.flush()
            time.sleep(interval_s)


def draw(samples: Annotated[list[Path], tyro.conf.Positional], out: Path) -> None:
    """Draws the memory of several runs, each named by its file, against minutes.

    PSS falls if other programs map the same libraries; the RSS of the learner's process does not depend on them.
    """
    figure, axes = plt.subplots(figsize=(10, 3.6), layout="constrained")
    for path in samples:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        minutes = [float(row["seconds"]) / 60 for row in rows]
        (line,) = axes.plot(minutes, [float(row["pss_mib"]) for row in rows], label=f"{path.stem}: all processes (PSS)")
        learner = [float(row["main_rss_mib"]) for row in rows]
        axes.plot(minutes, learner, "--", color=line.get_color(), label=f"{path.stem}: learner (RSS)")
    axes.set(xlabel="minutes", ylabel="MiB", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(out, dpi=120)
    plt.close(figure)


def _pss(process: psutil.Process) -> int | None:
    """Returns the PSS of a process in bytes; None if it has just ended."""
    try:
        pss: int = process.memory_full_info().pss
    except psutil.Error:
        return None
    return pss


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"sample": sample, "draw": draw}, description=__doc__)
