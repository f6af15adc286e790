"""Output of `kubebeast tune`: progress and result, as text on a terminal, or as JSON."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Protocol

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from kubebeast_common.log import JsonFormatter, line, make_handler
from kubebeast_common.terminal import without_echo
from kubebeast_learner.config import RunConfig
from kubebeast_learner.tune.choice import Expected
from kubebeast_learner.tune.settings_file import Setting

NUMBERS = ("threads", "servers", "actors", "steps/s")
MAX_ROWS = 16
"""Maximum number of the fastest choices in the table."""


class Output(Protocol):
    """Output to standard error; standard output is for the settings."""

    def measuring(self, what: str, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Reports a measurement that takes about `seconds`."""

    def show(self, considered: Sequence[Expected], best: Expected, settings: Sequence[Setting]) -> None:
        """Reports the considered choices and the settings of the best."""


def make_output(run: RunConfig, total_s: float) -> Output:
    """Returns the output for the run's settings. total_s: duration of all measurements together."""
    speaks_json = run.progress == "json" or isinstance(make_handler("info", run.log_format).formatter, JsonFormatter)
    if speaks_json and run.progress != "table":
        return JsonOutput(total_s, is_silent=run.progress == "none")
    return TerminalOutput(total_s, is_silent=run.progress == "none")


class JsonOutput:
    """One log line for each measurement as it begins, for each choice and for each setting."""

    def __init__(self, total_s: float, *, is_silent: bool) -> None:
        self._left_s, self._is_silent = total_s, is_silent

    @contextlib.contextmanager
    def measuring(self, what: str, seconds: float) -> Iterator[None]:
        if not self._is_silent:
            self._say("progress", measuring=what, eta_s=round(self._left_s, 1))
        yield
        self._left_s -= seconds

    def show(self, considered: Sequence[Expected], best: Expected, settings: Sequence[Setting]) -> None:
        for each in considered:
            self._say("choice", chosen=each is best, **_plain(each))
        for setting in settings:
            self._say("setting", **asdict(setting))

    def _say(self, message: str, **values: object) -> None:
        print(line(__name__, message, JsonFormatter().format, **values), file=sys.stderr, flush=True)


class TerminalOutput:
    """A bar with the remaining time, then a table of the choices and a line for every setting."""

    def __init__(self, total_s: float, *, is_silent: bool) -> None:
        self._console = Console(stderr=True)
        self._total_s, self._done_s, self._is_silent = total_s, 0.0, is_silent

    @contextlib.contextmanager
    def measuring(self, what: str, seconds: float) -> Iterator[None]:
        text = f"{what}, about {self._total_s - self._done_s:.0f} s left"
        if self._console.is_terminal:
            columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False))
            bar = Progress(*columns, console=self._console, transient=True, disable=self._is_silent)
            with without_echo(self._console.file), bar as progress:
                progress.add_task(text, total=self._total_s, completed=int(self._done_s))
                yield
        else:
            if not self._is_silent:
                self._say(text)
            yield
        self._done_s += seconds

    def show(self, considered: Sequence[Expected], best: Expected, settings: Sequence[Setting]) -> None:
        title = "expected env-steps a second; -> is chosen"
        table = Table(title=title, title_justify="left", box=None)
        for name in ("", "device", "precision", "threads", "servers", "actors", "steps/s", "limit"):
            justify: JustifyMethod = "right" if name in NUMBERS else "left"
            table.add_column(name, justify=justify, no_wrap=True)
        for each in _shown(considered, best):
            choice = each.choice
            numbers = (choice.learner_threads, choice.num_servers, choice.num_actors, round(each.steps_per_s))
            mark = "->" if each is best else ""
            table.add_row(mark, choice.device, choice.precision, *(f"{n:,}" for n in numbers), each.saturates)
        self._console.print(table)
        for setting in settings:
            self._say(f"{setting.name} {setting.value}: {setting.reason}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _shown(considered: Sequence[Expected], best: Expected) -> list[Expected]:
    shown = list(considered[:MAX_ROWS])
    return shown if best in shown else [*shown, best]


def _plain(each: Expected) -> dict[str, object]:
    paces = {f"{stage}_steps_per_s".lower(): round(pace, 1) for stage, pace in each.paces.items()}
    return {
        **asdict(each.choice),
        "steps_per_s": round(each.steps_per_s, 1),
        "saturates": each.saturates,
        **paces,
    }
