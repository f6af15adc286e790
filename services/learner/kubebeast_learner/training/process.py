"""Process of a training: signals, threads, logs, exit status."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console
from rich.logging import RichHandler

from kubebeast_common import log
from kubebeast_common.cli.settings import as_settings
from kubebeast_common.volume import is_full
from kubebeast_learner.actors.base import Actors, ActorsError
from kubebeast_learner.algorithm.skipped import DivergedError
from kubebeast_learner.config import ConfigError, RanksConfig, RunConfig, TrainingConfig
from kubebeast_learner.config.resuming import changes, check_resume
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.machine.out_of_memory import NotEnoughMemoryError
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.ranks.group import RankLostError, first_ranks, open_group
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.ranks.settings import require_alike
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.own_trackers import load_trackers
from kubebeast_learner.training.progress import Mode, make_progress
from kubebeast_learner.training.run_folder import RunFolderError
from kubebeast_learner.training.stopping import stop_on_signals
from kubebeast_runs.files.room import POLL_S
from kubebeast_runs.log import RunLog, default_xpid
from kubebeast_runs.rank_log import RankLog

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2
ALONE_CONFIG = RanksConfig()
FAILURES = (
    *(ActorsError, CheckpointError, DivergedError, ModelSpecError),
    *(NotEnoughMemoryError, OSError, RankLostError, RunFolderError),
)
"""Errors that end a run with one line in its log."""

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
OpenActors = Callable[[ConfigT, Path, Checkpoint | None], AbstractContextManager[Actors]]
"""Makes the actors of a run from its configuration, its folder and, if it resumes, the checkpoint."""
OpenLog = Callable[[], RunLog | RankLog]


def run(
    config: ConfigT,
    open_actors: OpenActors[ConfigT],
    *,
    num_local_processes: int,
    monitor: Monitor | None = None,
    linger: bool = False,
    place: Place = ALONE,
    ranks: RanksConfig = ALONE_CONFIG,
) -> int:
    """Trains to the end, to a signal or to an error, with everything logged. Returns the exit status.

    Args:
        num_local_processes: Processes other than this one that need a core each.
        monitor: Receives the state of the training.
        linger: If set, a completed training waits for a signal before its actors are closed.
        place: Place among the processes that train together, each of which calls this function.
        ranks: Timeouts of their waits for each other.

    Raises:
        ConfigError: If the run's folder cannot be written, or if the ranks do not meet or have different settings.
    """
    with open_group(place, choose_device(config.run.device, place), ranks.rank_timeout_s):
        require_alike(config)
        savedir, xpid = config.run.savedir.expanduser().absolute(), first_ranks(config.run.xpid or default_xpid())
        config = replace(config, run=replace(config.run, xpid=xpid, savedir=savedir))
        member = _Member(place, ranks.share_timeout_s, num_local_processes, monitor or Monitor(), linger)
        return _run(config, open_actors, member)


@dataclass(frozen=True, slots=True)
class _Member:
    """Role of a process in the training, apart from its configuration."""

    place: Place
    patience_s: float
    num_local_processes: int
    monitor: Monitor
    linger: bool


def _run(config: ConfigT, open_actors: OpenActors[ConfigT], member: _Member) -> int:
    savedir, xpid, place = config.run.savedir, config.run.xpid, member.place
    console = Console()
    with (
        _logging_to(console, config.run, place) as handler,
        stop_on_signals("ending with a checkpoint") as stop,
    ):
        open_log: OpenLog = partial(RankLog, savedir, xpid)
        if place.is_first:
            open_log = partial(RunLog, savedir, xpid, load_trackers(config.run))
        run_log = _wait_for_folder(savedir / xpid, open_log, stop)
        if run_log is None:
            return stop.exit_status
        with run_log:
            try:
                keep_freed_memory()
                _set_threads(config.run.learner_threads, member.num_local_processes, place.num_local_ranks)
                summary = _train(config, open_actors, run_log, console, stop, member)
            except ConfigError as error:
                logger.error("%s", error)
                return EXIT_USAGE
            except FAILURES as error:
                logger.error("the run failed: %s", error)
                return EXIT_FAILED
            except Exception:
                logger.exception("the run failed")
                return EXIT_FAILED
            run_log.successful = True
            if not place.is_first:
                return stop.exit_status
            if isinstance(handler.formatter, log.JsonFormatter):
                logger.info("%s", summary)
                return stop.exit_status
    print(summary, flush=True)
    return stop.exit_status


def _wait_for_folder(folder: Path, open_log: OpenLog, stop: threading.Event) -> RunLog | RankLog | None:
    """Opens the log of the run in `folder` as soon as its volume takes a folder; returns None if stopped before.

    Raises ConfigError if the folder cannot be written for another reason.
    """
    is_waiting = False
    while True:
        try:
            return open_log()
        except OSError as error:
            if not is_full(error):
                raise ConfigError(f"savedir = {str(folder.parent)!r}: {error}") from error
            if not is_waiting:
                text = "%s cannot be made or locked: %s; waiting until it can, SIGTERM ends the wait"
                logger.warning(text, folder, error.strerror)
            is_waiting = True
        if stop.wait(POLL_S):
            return None


def _train(
    config: ConfigT,
    open_actors: OpenActors[ConfigT],
    run_log: RunLog | RankLog,
    console: Console,
    stop: threading.Event,
    member: _Member,
) -> str:
    """Trains to the end or until `stop`; returns the summary."""
    run, place, monitor = config.run, member.place, member.monitor
    choose_device(run.device, place)  # a missing device is refused before the run's folder records it
    torch.manual_seed(run.seed)
    store = CheckpointStore(run_log.folder, run.keep_checkpoints)
    saved = first_ranks(_load_newest(store) if place.is_first else None)
    _settle(config, saved)
    monitor.num_crashes = run_log.num_crashes
    mode: Mode = run.progress if place.is_first else "none"
    with (
        open_actors(config, run_log.folder, None if saved is None else saved[1]) as actors,
        contextlib.closing(make_progress(mode, run.xpid, run.log_interval_s, console)) as progress,
    ):
        training = Training(
            config,
            actors=actors,
            store=store,
            run_log=run_log,
            progress=progress,
            monitor=monitor,
            place=place,
            patience_s=member.patience_s,
        )
        training.run(stop, saved)
        summary = training.summary()
        if not (training.is_complete or stop.is_set() or place.is_on_one_machine):
            # After a success, the agent would wait minutes for the one that has left, and not restart this rank.
            raise RankLostError("a rank elsewhere was asked to stop; torchrun starts those again that are left")
        if member.linger and not stop.is_set():
            monitor.note_finished()
            logger.info("trained to the end; waiting for SIGTERM. %s", summary)
            stop.wait()
        return summary


def _load_newest(store: CheckpointStore) -> tuple[Path, Checkpoint] | None:
    saved = store.load_newest()
    if saved is None:
        return None
    path, state = saved
    checkpoint = Checkpoint.of(path, state)
    checkpoint.require_resumable(path)
    return path, checkpoint


def _settle(config: TrainingConfig, saved: tuple[Path, Checkpoint] | None) -> None:
    """Logs the settings and their changes since the checkpoint. Raises ConfigError if the checkpoint forbids one."""
    settings = as_settings(config)
    changed: Mapping[str, tuple[Any, Any]] = {}
    if saved is not None:
        path, checkpoint = saved
        before = as_settings(TrainingConfig()) | dict(checkpoint.config)  # older checkpoints lack newer settings
        with taking_over(path, "config"):
            changed = changes(settings, before)
        check_resume(settings, before, str(path))
    defaults = as_settings(type(config)())
    chosen = " ".join(f"{name}={value}" for name, value in settings.items() if value != defaults.get(name))
    logger.info("settings other than the defaults, config.yaml of the run has all: %s", chosen or "none")
    if changed:
        logger.info(
            "changed since the checkpoint: %s", ", ".join(f"{name} {a} -> {b}" for name, (a, b) in changed.items())
        )


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


def _set_threads(learner_threads: int, num_local_processes: int, num_local_ranks: int) -> None:
    cores = num_cores() // num_local_ranks
    torch.set_num_threads(learner_threads or min(4, max(1, cores - num_local_processes)))
