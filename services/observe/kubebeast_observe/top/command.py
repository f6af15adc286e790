"""Entry point of `kubebeast top`: shows a learner once, or until it is stopped."""

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace

from rich.console import Console
from rich.live import Live

from kubebeast_observe.errors import UnavailableError, WatchError, report
from kubebeast_observe.settings import METRICS_PORT, TopConfig, http_url
from kubebeast_observe.table import console
from kubebeast_observe.top.keys import keys
from kubebeast_observe.top.poller import INTERVAL_S, Poller
from kubebeast_observe.top.rows import Order
from kubebeast_observe.top.screen import draw
from kubebeast_observe.top.source import DirectSource, Source
from kubebeast_observe.top.view import View, make_view

DEFAULT_LEARNER = "127.0.0.1"
HOW_TO_SERVE = (
    f"kubebeast train and kubebeast learner serve this data with --http-address 127.0.0.1:{METRICS_PORT}; "
    "kubebeast top HOST:PORT shows a learner at another address, kubebeast top -n NAMESPACE a learner in Kubernetes."
)
FILE_WIDTH = 160
"""Columns of the view if standard output is no terminal."""
ORDERS: dict[str, Order] = {"e": "env", "s": "steps", "w": "wait", "a": "age", "n": "name"}
"""Sort order by key."""
STREAMS_KEY, QUIT_KEY = "x", "q"
KEYS = "e env time  s steps/s  w wait  a age  n name   x streams   q quit"


def run(config: TopConfig) -> int:
    """Shows the learner once, or until a signal or the key q. Returns the exit status."""
    try:
        poller = Poller(_open(config))
        poller.wait(1)
        if config.once:
            _print(make_view(poller.wait(2)), config)
        elif config.json or not Console().is_terminal:
            while True:
                _print(make_view(poller.newest()), config)
                time.sleep(INTERVAL_S)
        else:
            _watch(poller, config)
    except WatchError as error:
        status = report("kubebeast top", error)
        if isinstance(error, UnavailableError) and not config.in_cluster:
            print(HOW_TO_SERVE, file=sys.stderr)
        return status
    return 0


def _open(config: TopConfig) -> Source:
    if not config.in_cluster:
        return DirectSource(http_url(config.learner or DEFAULT_LEARNER))
    from kubebeast_observe.top.cluster_source import ClusterSource  # needs the kubernetes package

    return ClusterSource(config)


def _print(view: View, config: TopConfig) -> None:
    if config.json:
        print(json.dumps(asdict(view)), flush=True)
        return
    out = console(FILE_WIDTH)
    out.print(draw(view, config.sort, out.width, streams=config.streams))


def _watch(poller: Poller, config: TopConfig) -> None:
    """Draws in place until the key q."""
    out = Console()
    with _sigterm_unwinds(), keys() as next_key, Live(console=out, auto_refresh=False, screen=True) as live:
        key = ""
        while key != QUIT_KEY:
            view = make_view(poller.newest())
            help_text = f"by {config.sort}: {KEYS}" if next_key else ""
            picture = draw(view, config.sort, out.width, out.height, streams=config.streams, keys=help_text)
            live.update(picture, refresh=True)
            key = (next_key or _no_key)(INTERVAL_S)
            config = obey(key, config)


def obey(key: str, config: TopConfig) -> TopConfig:
    """Returns the settings after a key press."""
    if key in ORDERS:
        return replace(config, sort=ORDERS[key])
    return replace(config, streams=not config.streams) if key == STREAMS_KEY else config


def _no_key(timeout_s: float) -> str:
    time.sleep(timeout_s)
    return ""


@contextlib.contextmanager
def _sigterm_unwinds() -> Iterator[None]:
    """Makes SIGTERM exit through the process's context managers, which restore the terminal."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
