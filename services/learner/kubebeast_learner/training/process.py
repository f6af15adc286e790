"""Process of a training: its group of ranks, signals, logs, exit status."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rich.console import Console
from rich.logging import RichHandler

from kubebeast_common import log
from kubebeast_common.access.places import absolute
from kubebeast_common.process.stopping import Stop, stop_on_signals
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.config import RanksConfig, RunConfig, TrainingConfig
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.ranks.group import first_ranks, open_group
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.ranks.settings import require_alike
from kubebeast_learner.training.meeting import Met
from kubebeast_runs.log import default_xpid

ALONE_CONFIG = RanksConfig()

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


class EndedError(Exception):
    """The training cannot begin or go on, for a reason that was logged, or was asked to stop before it began."""

    def __init__(self, exit_status: int) -> None:
        super().__init__(exit_status)
        self.exit_status = exit_status


@dataclass(slots=True)
class TrainingProcess(Generic[ConfigT]):
    """A process that trains, from its first log line to its exit status."""

    config: ConfigT
    """The configuration with the name and the absolute folder of the run."""
    place: Place
    """Place among the processes that train together."""
    patience_s: float
    """Longest wait of the other ranks for this one's batch."""
    stop: Stop
    """Set by the first signal."""
    console: Console
    writes_json: bool
    """True if the log is JSON lines."""
    exit_status: int = 0
    """Exit status, known after the process was closed."""
    summary: str = ""
    """Text for standard output at the end; empty if there is none."""
    env_spec: EnvSpec | None = None
    """The environment that has decided on settings; None if none has."""

    def decide(self, met: Met[TrainingConfig]) -> None:
        """Takes the settings that an environment has decided on. Raises ConfigError if those of other ranks differ."""
        config: Any = met.config
        self.config, self.env_spec = config, met.spec
        require_alike(self.config)


@contextlib.contextmanager
def open_process(
    config: ConfigT, place: Place = ALONE, ranks: RanksConfig = ALONE_CONFIG
) -> Iterator[TrainingProcess[ConfigT]]:
    """Joins the group of ranks, configures the log and takes the signals; an EndedError ends the context.

    Args:
        config: Settings of the training.
        place: Place among the processes that train together, each of which calls this function.
        ranks: Timeouts of their waits for each other.

    Raises:
        ConfigError: If the ranks do not meet or have different settings.
    """
    with open_group(place, choose_device(config.run.device, place), ranks.rank_timeout_s):
        require_alike(config)
        savedir, xpid = absolute(config.run.savedir), first_ranks(config.run.xpid or default_xpid())
        config = replace(config, run=replace(config.run, xpid=xpid, savedir=savedir))
        console = Console()
        with (
            _logging_to(console, config.run, place) as handler,
            stop_on_signals("ending with a checkpoint", config.run.stop_status) as stop,
        ):
            writes_json = isinstance(handler.formatter, log.JsonFormatter)
            process = TrainingProcess(config, place, ranks.share_timeout_s, stop, console, writes_json)
            try:
                yield process
                process.exit_status = stop.exit_status
            except EndedError as ended:
                process.exit_status = ended.exit_status
        if process.summary:
            print(process.summary, flush=True)


@contextlib.contextmanager
def _logging_to(console: Console, run: RunConfig, place: Place) -> Iterator[logging.Handler]:
    """Logs above the live table on a terminal, else to standard error, which leaves standard output to JSON."""
    handler: logging.Handler
    if console.is_interactive and run.log_format != "json" and place.is_first:
        handler = RichHandler(run.log_level.upper(), console=console, show_path=False)
    else:
        handler = log.make_handler(run.log_level, run.log_format)
    root, own = logging.getLogger(), logging.getLogger("kubebeast_learner")
    levels = root.level, own.level
    root.setLevel(logging.INFO)  # the level of out.log; lower messages of libraries are noise
    own.setLevel(logging.DEBUG if run.log_level == "debug" else logging.INFO)
    root.addHandler(handler)
    logging.captureWarnings(True)
    log.note(run_id=run.xpid, rank="" if place.is_alone else str(place.rank))
    try:
        yield handler
    finally:
        log.note(run_id="", rank="")
        logging.captureWarnings(False)
        root.removeHandler(handler)
        root.setLevel(levels[0])
        own.setLevel(levels[1])
