"""Progress of a run on the terminal: a live table if possible, one line of JSON at a time otherwise."""

import contextlib
import datetime
import itertools
import math
import sys
from typing import Literal, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from kubebeast_common.log import JsonFormatter, line
from kubebeast_common.terminal import without_echo
from kubebeast_learner.run.snapshot import Snapshot

Mode = Literal["auto", "table", "json", "none"]


class Progress(Protocol):
    interval_s: float
    """Seconds between calls of `show`."""

    def show(self, snapshot: Snapshot) -> None: ...
    def close(self) -> None:
        """Releases the terminal. Idempotent."""


def make_progress(mode: Mode, title: str, log_interval_s: float, console: Console) -> Progress:
    """Returns the display of `mode`; auto is a table if `console` is a terminal, else JSON lines on standard output."""
    if mode == "auto":
        mode = "table" if console.is_interactive else "json"
    if mode == "table":
        return TableProgress(title, console)
    return JsonProgress(log_interval_s, sys.stdout if mode == "json" else None)


class JsonProgress:
    """A display with one JSON line per snapshot: a log line with every field of Snapshot, null if unknown.

    Prints nothing without a stream.
    """

    def __init__(self, interval_s: float, stream: TextIO | None) -> None:
        self.interval_s = interval_s
        self._stream = stream

    def show(self, snapshot: Snapshot) -> None:
        if self._stream is None:
            return
        values = {name: _finite(value) for name, value in snapshot.flat().items()}
        print(line(__name__, "progress", JsonFormatter().format, **values), file=self._stream, flush=True)

    def close(self) -> None:
        pass


class TableProgress:
    """A table that is redrawn in place; log messages through the same console scroll above it."""

    interval_s = 0.5

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._shown = contextlib.ExitStack()
        self._shown.enter_context(without_echo(console.file))
        self._live = self._shown.enter_context(Live(console=console, auto_refresh=False))

    def show(self, snapshot: Snapshot) -> None:
        self._live.update(render(snapshot, self._title), refresh=True)

    def close(self) -> None:
        self._shown.close()


def render(snapshot: Snapshot, title: str) -> Panel:
    """Returns the live table for one snapshot."""
    table = Table.grid(padding=(0, 2), expand=True)
    for justify in ("left", "right", "left", "right"):
        table.add_column(justify=justify)
    cells = _cells(snapshot)
    for left, right in itertools.zip_longest(cells[::2], cells[1::2], fillvalue=("", "")):
        table.add_row(*left, *right)
    body = Table.grid(expand=True)
    body.add_row(ProgressBar(total=snapshot.total_steps, completed=min(snapshot.step, snapshot.total_steps)))
    body.add_row(table)
    troubles = {
        "restarts of actors": snapshot.actor_restarts,
        "episodes in no mean, as their environments failed": snapshot.env_failures,
        "steps too old": snapshot.steps_dropped_stale,
        "failed checkpoints": snapshot.checkpoint_failures,
    }
    if any(troubles.values()):
        body.add_row(f"[yellow]{', '.join(f'{name} {count:,}' for name, count in troubles.items() if count)}[/]")
    return Panel(body, title=escape(title), title_align="left")


def _cells(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Returns names and values of the table's cells, two per row."""
    now = snapshot.flat()
    episodes = f"{snapshot.episodes:,} ({_number(snapshot.mean_episode_step, ',.0f')})"
    return [
        ("steps", f"{snapshot.step:,} / {snapshot.total_steps:,}"),
        ("steps/s", _number(snapshot.sps, ",.0f")),
        ("elapsed", _duration(snapshot.elapsed_s)),
        ("remaining", _duration(snapshot.eta_s)),
        ("mean return", _number(snapshot.mean_episode_return, ".2f")),
        ("episodes (mean length)", episodes),
        ("total loss", _number(now["total_loss"], ".3f")),
        ("policy gradient loss", _number(now["pg_loss"], ".3f")),
        ("baseline loss", _number(now["baseline_loss"], ".3f")),
        ("entropy", _number(now["entropy"], ".3f")),
        ("gradient norm", _number(now["grad_norm"], ".2f")),
        ("learning rate", _number(now["learning_rate"], ".2e")),
        ("rollout queue", f"{snapshot.learner_queue_size} / {snapshot.learner_queue_capacity}"),
        ("policy lag", _number(now["policy_lag"], ".1f")),
        ("actors (environments)", f"{snapshot.streams} ({snapshot.envs})"),
        ("rows per inference", _number(snapshot.rows_per_inference, ".1f")),
        ("checkpoint age", _duration(snapshot.checkpoint_age_s)),
        ("updates (skipped)", f"{snapshot.num_updates:,} ({snapshot.num_skipped_updates})"),
        *((escape(f"info/{key}"), _number(mean, ",.4g")) for key, mean in snapshot.infos.items()),
        *((escape(f"curriculum/{name}"), format(number, ",.4g")) for name, number in snapshot.curriculum.items()),
        *((f"league/{name}", format(number, ",.4g")) for name, number in snapshot.league.items()),
    ]


def _number(value: float | None, spec: str) -> str:
    return "-" if value is None else format(value, spec)


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else str(datetime.timedelta(seconds=round(seconds)))


def _finite(value: float | int | None) -> float | int | None:
    """Replaces infinity and NaN, which JSON does not have, by None."""
    return None if value is None or not math.isfinite(value) else value
