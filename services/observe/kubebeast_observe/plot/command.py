"""Entry point of `kubebeast plot`: reads the runs, draws them, and prints a summary in numbers."""

import csv
import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kubebeast_common.settings import ConfigError
from kubebeast_observe.numbers import number_text
from kubebeast_observe.plot.curve import Curve, read_curve
from kubebeast_observe.plot.figure import draw
from kubebeast_observe.plot.group import Group, group_curves
from kubebeast_observe.settings import PlotConfig
from kubebeast_observe.table import console
from kubebeast_runs.folder import find_runs

CSV_COLUMNS = ("run", "step", "hours", "mean_episode_return")
CSV_POINTS = 200
FILE_WIDTH = 120
"""Columns of the table if standard output is no terminal."""


def run(config: PlotConfig) -> int:
    """Draws config.runs. Returns the exit status; raises ConfigError if nothing can be drawn or written."""
    folders = find_runs("runs", config.runs, config.savedir, ("logs.csv",))
    curves = [read_curve(folder, config.bin_steps, config.returns, config.evaluator) for folder in folders]
    groups = group_curves(curves)
    drawn = [_drawable(group, config.x_max) for group in groups]
    if not any(group.curves for group in drawn):
        raise ConfigError(f"runs = {' '.join(config.runs)}: no episode has finished in any of them")
    out = config.out.expanduser()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draw([group for group in drawn if group.curves], out, threshold=config.threshold, title=config.title)
        if config.csv:
            write_csv([curve for group in drawn for curve in group.curves], out.with_suffix(".csv"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"out = {str(out)!r}: {error}") from error
    summaries = [_summary(group, config.threshold) for group in groups]
    if config.json:
        print(json.dumps({"out": str(out), "groups": summaries}))
    else:
        print_table(summaries, config.threshold, console(FILE_WIDTH))
        print(f"picture: {out}" + (f", numbers: {out.with_suffix('.csv')}" if config.csv else ""))
    return 0


def write_csv(curves: Sequence[Curve], path: Path) -> None:
    """Writes every run, thinned to at most CSV_POINTS rows, including the first and the last."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for curve in curves:
            num_rows = len(curve.steps)
            for index in np.unique(np.linspace(0, num_rows - 1, min(num_rows, CSV_POINTS)).round().astype(int)):
                values = (curve.hours[index], curve.returns[index])
                writer.writerow((curve.name, int(curve.steps[index]), *(f"{value:.4f}" for value in values)))


def print_table(summaries: Sequence[dict[str, Any]], threshold: float | None, out: Console) -> None:
    """Prints one row per run, and below the runs of a group their mean and standard deviation."""
    table = Table("run", "steps", "time", "steps/s", "mean return")
    if threshold is not None:
        table.add_column(f"steps to {threshold:g}")
    for column in table.columns[1:]:
        column.justify = "right"
    table.columns[0].overflow = "fold"
    for group in summaries:
        for row in group["runs"]:
            time = datetime.timedelta(seconds=round(3600 * row["hours"]))
            cells = [row["run"], f"{row['steps']:,}", str(time), number_text(row["steps_per_second"])]
            cells += [number_text(row["mean_return"], ".2f"), number_text(row["steps_to_threshold"], ",")]
            table.add_row(*cells[: len(table.columns)])
        if len(group["runs"]) > 1:
            spreads = _spread(group, "mean_return", ".2f"), _spread(group, "steps_to_threshold", ",.0f")
            table.add_row(*("mean ± std", "", "", "", *spreads)[: len(table.columns)], style="bold")
        table.add_section()
    out.print(table)


def _drawable(group: Group, x_max: float | None) -> Group:
    """Returns the runs that have a return, up to x_max steps."""
    curves = [curve.until(x_max) if x_max is not None else curve for curve in group.curves]
    return replace(group, curves=[curve for curve in curves if curve.steps.size])


def _summary(group: Group, threshold: float | None) -> dict[str, Any]:
    """Returns plain values; None if a run has none."""
    runs = [
        {
            "run": curve.name,
            "steps": curve.num_steps,
            "hours": curve.num_hours,
            "steps_per_second": curve.steps_per_second,
            "mean_return": float(curve.returns[-1]) if curve.returns.size else None,
            "steps_to_threshold": curve.steps_to(threshold) if threshold is not None else None,
        }
        for curve in group.curves
    ]
    return {"label": group.label, "runs": runs}


def _spread(group: dict[str, Any], name: str, spec: str) -> str:
    """Formats mean and standard deviation over the runs that have the value, with their number if not all have it."""
    values = [row[name] for row in group["runs"] if row[name] is not None]
    if not values:
        return "-"
    some = f" ({len(values)} of {len(group['runs'])})" if len(values) < len(group["runs"]) else ""
    return f"{np.mean(values):{spec}} ± {np.std(values):{spec}}{some}"
