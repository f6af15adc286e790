"""What surrounds a training in its process: signals, threads, logs, the exit status."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console
from rich.logging import RichHandler

from kubebeast_common import log
from kubebeast_learner.actors.base import Actors, ActorsError
from kubebeast_learner.algorithm.learner import DivergedError
from kubebeast_learner.config import ConfigError, RunConfig, TrainingConfig
from kubebeast_learner.config.resuming import changes, check_resume
from kubebeast_learner.config.sources import as_settings
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.run.log import RunLog, default_xpid
from kubebeast_learner.training.build import choose_device
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import make_progress
from kubebeast_learner.training.stopping import stop_on_signals

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
OpenActors = Callable[[ConfigT, Path, Mapping[str, Any] | None], AbstractContextManager[Actors]]
"""Makes the actors of a run from its configuration, its folder and, where it resumes, the state of the checkpoint."""


def run(
    config: ConfigT,
    open_actors: OpenActors[ConfigT],
    *,
    num_local_processes: int,
    monitor: Monitor | None = None,
    linger: bool = False,
) -> int:
    """Trains to the end, to a signal or to an error, with everything logged. Returns the exit status.

    num_local_processes: processes beside this one that need a core each. monitor: is told how the training does.
    linger: a training that has come to its end waits for a signal before its actors are closed.
    ConfigError when the run's folder cannot be written.
    """
    savedir = config.run.savedir.expanduser().absolute()
    config = replace(config, run=replace(config.run, xpid=config.run.xpid or default_xpid(), savedir=savedir))
    console = Console()
    try:
        run_log = RunLog(savedir, config.run.xpid)
    except OSError as error:
        raise ConfigError(f"savedir = {str(savedir)!r}: {error}") from error
    with _logging_to(console, config.run) as handler, run_log:
        try:
            keep_freed_memory()
            _set_threads(config.run.learner_threads, num_local_processes)
            with stop_on_signals(handler, "ending with a checkpoint") as stop:
                summary = _train(config, open_actors, run_log, console, monitor or Monitor(), stop, linger)
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except (ActorsError, CheckpointError, DivergedError, ModelSpecError, OSError) as error:
            logger.error("the run failed: %s", error)
            return EXIT_FAILED
        except Exception:
            logger.exception("the run failed")
            return EXIT_FAILED
        run_log.successful = True
        if isinstance(handler.formatter, log.JsonFormatter):
            logger.info("%s", summary)
            return 0
    print(summary, flush=True)
    return 0


def _train(
    config: ConfigT,
    open_actors: OpenActors[ConfigT],
    run_log: RunLog,
    console: Console,
    monitor: Monitor,
    stop: threading.Event,
    linger: bool,
) -> str:
    """Trains to the end or until `stop`; returns the summary."""
    run = config.run
    choose_device(run.device)  # one that is not here is refused before the run's folder records it
    torch.manual_seed(run.seed)
    store = CheckpointStore(run_log.folder, run.keep_checkpoints)
    saved = store.load_newest()
    _settle(config, run_log, saved)
    with (
        open_actors(config, run_log.folder, None if saved is None else saved[1]) as actors,
        contextlib.closing(make_progress(run.progress, run.xpid, run.log_interval_s, console)) as progress,
    ):
        training = Training(config, actors=actors, store=store, run_log=run_log, progress=progress, monitor=monitor)
        training.run(stop, saved)
        summary = training.summary()
        if linger and not stop.is_set():
            monitor.note_finished()
            logger.info("trained to the end; waiting for SIGTERM. %s", summary)
            stop.wait()
        return summary


def _settle(config: TrainingConfig, run_log: RunLog, saved: tuple[Path, Mapping[str, Any]] | None) -> None:
    """Records the settings, unless the checkpoint forbids one; logs those that a resumed run takes over."""
    settings = as_settings(config)
    changed: Mapping[str, tuple[Any, Any]] = {}
    if saved is not None:
        path, state = saved
        before = as_settings(TrainingConfig()) | state["config"]  # an older checkpoint lacks what there was not yet
        check_resume(settings, before, str(path))
        changed = changes(settings, before)
    run_log.record(settings)
    logger.info("settings: %s", " ".join(f"{name}={value}" for name, value in settings.items()))
    if changed:
        logger.info(
            "changed since the checkpoint: %s", ", ".join(f"{name} {a} -> {b}" for name, (a, b) in changed.items())
        )


@contextlib.contextmanager
def _logging_to(console: Console, run: RunConfig) -> Iterator[logging.Handler]:
    """Messages go above the live table on a terminal, else to standard error, which leaves standard output to JSON."""
    handler: logging.Handler
    if console.is_interactive and run.log_format != "json":
        handler = RichHandler(run.log_level.upper(), console=console, show_path=False)
    else:
        handler = log.make_handler(run.log_level, run.log_format)
    root, own = logging.getLogger(), logging.getLogger("kubebeast_learner")
    levels = root.level, own.level
    root.setLevel(logging.INFO)  # that of out.log; what libraries say below it helps nobody
    own.setLevel(logging.DEBUG if run.log_level == "debug" else logging.INFO)
    root.addHandler(handler)
    logging.captureWarnings(True)
    log.note(run_id=run.xpid)
    try:
        yield handler
    finally:
        log.note(run_id="")
        logging.captureWarnings(False)
        root.removeHandler(handler)
        root.setLevel(levels[0])
        own.setLevel(levels[1])


def _set_threads(learner_threads: int, num_local_processes: int) -> None:
    torch.set_num_threads(learner_threads or min(4, max(1, num_cores() - num_local_processes)))
