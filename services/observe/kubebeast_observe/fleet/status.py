"""`kubebeast fleet`: shows the learner, the groups of env-servers and their pods."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from rich.live import Live

from kubebeast_observe.errors import UnavailableError, WatchError, report
from kubebeast_observe.fleet.connection import connect
from kubebeast_observe.fleet.observer import Observer
from kubebeast_observe.fleet.state import FleetState, as_json
from kubebeast_observe.fleet.table import draw
from kubebeast_observe.settings import FleetConfig
from kubebeast_observe.table import console

REFRESH_S = 2.0
FILE_WIDTH = 500
"""Columns if standard output is no terminal, so that nothing is folded."""

Show = Callable[[FleetState], None]


def run(config: FleetConfig) -> int:
    """Shows the fleet once, or until a signal. Returns the exit status."""
    try:
        observer = Observer(connect(config), config.release)
        state = observer.observe()
        with _display(config) as show:
            show(state)
            while config.watch:
                time.sleep(REFRESH_S)
                state = _observe_again(observer, state)
                show(state)
    except WatchError as error:
        return report("kubebeast fleet", error)
    return 0


def _observe_again(observer: Observer, last: FleetState) -> FleetState:
    """Returns the new state; the last one while the API server does not answer."""
    try:
        return observer.observe()
    except UnavailableError as error:
        return replace(last, notes=[f"not up to date: {error}"])


@contextlib.contextmanager
def _display(config: FleetConfig) -> Iterator[Show]:
    """Yields a function that prints JSON lines, redraws a table in place, or prints one table after another."""
    if config.json:
        yield lambda state: print(json.dumps(as_json(state)), flush=True)
        return
    out = console(FILE_WIDTH)
    if config.watch and out.is_terminal:
        with Live(console=out, auto_refresh=False, screen=True) as live:
            yield lambda state: live.update(draw(state, out.width, out.height), refresh=True)
    else:
        yield lambda state: out.print(draw(state, out.width))
