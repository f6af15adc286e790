"""A sweep on the terminal: a live table of its trials, or one line of JSON at a time."""

import contextlib
import sys
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TextIO

from optuna.trial import FrozenTrial, TrialState
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubebeast_common.log import JsonFormatter, line
from kubebeast_common.terminal import without_echo
from kubebeast_observe.numbers import short_text
from kubebeast_sweep.active_trial import STEPS
from kubebeast_sweep.plan import Plan
from kubebeast_sweep.population import GENERATION, MEMBER, generation_of
from kubebeast_sweep.results.files import STATES, cpu_s_of, score_of
from kubebeast_sweep.space import to_setting
from kubebeast_sweep.trials.study import ENDED, Study

Mode = Literal["auto", "table", "json", "none"]
JSON_INTERVAL_S = 10.0
_STYLES = {"done": "green", "pruned": "dim", "failed": "red", "under way": "bold"}
_MARGIN = 8
"""Lines of a terminal besides the trials."""


class Display(Protocol):
    def show(self, num_steps: int) -> None:
        """num_steps: env-steps of the trials under way so far."""

    def close(self) -> None:
        """Releases the terminal. Idempotent."""


def make_display(mode: Mode, plan: Plan, study: Study, console: Console) -> Display:
    """Returns the display of `mode`; auto is a table if `console` is a terminal, else JSON lines on standard output."""
    if mode == "auto":
        mode = "table" if console.is_interactive else "json"
    if mode == "table":
        return TableDisplay(plan, study, console)
    return JsonDisplay(plan, study, sys.stdout if mode == "json" else None)


class JsonDisplay:
    """A display with a JSON line for each trial that ends, and one for the progress now and then."""

    def __init__(self, plan: Plan, study: Study, stream: TextIO | None) -> None:
        self._plan, self._study, self._stream = plan, study, stream
        self._shown = {each.number for each in study.trials() if each.state in ENDED}
        self._progress = Pace(plan, study)
        self._due_at = 0.0

    def show(self, num_steps: int) -> None:
        if self._stream is None:
            return
        for trial in self._study.trials():
            if trial.state in ENDED and trial.number not in self._shown:
                self._shown.add(trial.number)
                values = {name: to_setting(value) for name, value in trial.params.items()}
                state, score = STATES[trial.state], score_of(trial)
                self._print("trial", trial=trial.number, state=state, score=score, cpu_s=cpu_s_of(trial), **values)
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + JSON_INTERVAL_S
            self._print("progress", **self._progress.numbers(num_steps)._asdict())

    def close(self) -> None:
        pass

    def _print(self, message: str, **values: object) -> None:
        print(line(__name__, message, JsonFormatter().format, **values), file=self._stream, flush=True)


class TableDisplay:
    """A table that is redrawn in place: the best trials and those under way, as many as the terminal has lines for."""

    def __init__(self, plan: Plan, study: Study, console: Console) -> None:
        self._plan, self._study, self._console = plan, study, console
        self._progress = Pace(plan, study)
        self._shown = contextlib.ExitStack()
        self._shown.enter_context(without_echo(console.file))
        self._live = self._shown.enter_context(Live(console=console, auto_refresh=False))

    def show(self, num_steps: int) -> None:
        numbers = self._progress.numbers(num_steps)
        left = "" if numbers.eta_s is None else f", {numbers.eta_s / 60:.0f} min left"
        heading = f"{numbers.ended} of {numbers.trials} trials, {numbers.steps_per_s:,.0f} steps/s{left}"
        trials = self._study.trials()
        rows = ranked(self._plan, trials)[: max(3, self._console.height - _MARGIN)]
        self._live.update(Group(Text(heading, style="bold"), draw_table(self._plan, rows)), refresh=True)

    def close(self) -> None:
        self._shown.close()


class Numbers(NamedTuple):
    """Progress of a sweep."""

    trials: int
    ended: int
    """Trials that have ended."""
    steps_per_s: float
    """Env-steps of all runs per second, of this process."""
    eta_s: float | None
    """Estimated time that is left, in seconds; None before a trial has ended."""


class Pace:
    """Speed of a sweep in this process, and an estimate of the time that is left."""

    def __init__(self, plan: Plan, study: Study) -> None:
        self._plan, self._study = plan, study
        self._began = time.monotonic()
        self._num_before = self._num_ended()
        self._steps_before: float | None = None

    def numbers(self, num_steps: int) -> "Numbers":
        ended, elapsed = self._num_ended(), time.monotonic() - self._began
        steps = sum(trial.user_attrs.get(STEPS, 0) for trial in self._study.trials()) + num_steps
        if self._steps_before is None:
            self._steps_before = steps
        rate = (steps - self._steps_before) / elapsed if elapsed > 0 else 0.0
        new = ended - self._num_before
        eta = elapsed / new * (self._plan.num_trials - ended) if new else None
        return Numbers(self._plan.num_trials, ended, rate, eta)

    def _num_ended(self) -> int:
        return sum(trial.state in ENDED for trial in self._study.trials())


def ranked(plan: Plan, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Returns the trials under way, then the complete ones, those of newer generations and better ones first, then the
    others, the newest first.
    """
    sign = -1.0 if plan.direction == "maximize" else 1.0
    order = {TrialState.RUNNING: 0, TrialState.COMPLETE: 1}

    def place(trial: FrozenTrial) -> tuple[int, int, float, int]:
        rank = order.get(trial.state, 2)
        score = sign * (trial.value or 0.0) if rank == 1 else 0.0
        return rank, -generation_of(trial), score, -trial.number

    return sorted((each for each in trials if each.state != TrialState.WAITING), key=place)


def draw_table(plan: Plan, trials: Sequence[FrozenTrial]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    places = (MEMBER, GENERATION) if plan.population else ()
    for title in ("trial", *places, *plan.space, "state", plan.score, "CPU min"):
        table.add_column(title, justify="left" if title == "state" else "right", no_wrap=True)
    for trial in trials:
        state = STATES[trial.state]
        values = [_value_text(to_setting(trial.params.get(name))) for name in plan.space]
        cpu = f"{cpu_s_of(trial) / 60:.1f}"
        place = [str(trial.user_attrs[name]) for name in places]
        cells = [str(trial.number), *place, *values, state, short_text(score_of(trial), 4), cpu]
        table.add_row(*map(Text, cells), style=_STYLES.get(state, ""))
    return table


def _value_text(value: object) -> str:
    return short_text(value) if isinstance(value, float) else str(value)
