"""What surrounds a training in its process: signals, threads, logs, the exit status."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TypeVar

import torch
import yaml
from rich.console import Console
from rich.logging import RichHandler

from kubebeast_learner.actors import Actors, ActorsError
from kubebeast_learner.allocator import keep_freed_memory
from kubebeast_learner.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.config import ConfigError, TrainingConfig
from kubebeast_learner.config_sources import as_settings
from kubebeast_learner.cores import num_cores
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.learner import DivergedError
from kubebeast_learner.monitor import Monitor
from kubebeast_learner.progress import make_progress
from kubebeast_learner.run_log import RunLog, default_xpid
from kubebeast_learner.training import Training

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2
STDERR = 2

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
OpenActors = Callable[[ConfigT, Path, EnvSpec | None], AbstractContextManager[Actors]]
"""Makes the actors of a run from its resolved configuration, its folder and, where it resumes, its environment."""


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
        run_log = RunLog(savedir, config.run.xpid, as_settings(config))
    except OSError as error:
        raise ConfigError(f"savedir = {str(savedir)!r}: {error}") from error
    with _logging_to(console), run_log:
        try:
            _record_settings(run_log.folder, as_settings(config))
            keep_freed_memory()
            _set_threads(config.run.learner_threads, num_local_processes)
            summary = _train(config, open_actors, run_log, console, monitor or Monitor(), linger)
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except (ActorsError, CheckpointError, DivergedError, OSError) as error:
            logger.error("the run failed: %s", error)
            return EXIT_FAILED
        except Exception:
            logger.exception("the run failed")
            return EXIT_FAILED
        run_log.successful = True
    print(summary, flush=True)
    return 0


def _train(
    config: ConfigT,
    open_actors: OpenActors[ConfigT],
    run_log: RunLog,
    console: Console,
    monitor: Monitor,
    linger: bool,
) -> str:
    """Trains to the end or to a signal; returns the summary."""
    run = config.run
    torch.manual_seed(run.seed)
    store = CheckpointStore(run_log.folder, run.keep_checkpoints)
    with _stop_on_signals() as stop:
        saved = store.load_newest()
        spec = None if saved is None else EnvSpec.from_plain(saved[1]["env_spec"])
        with (
            open_actors(config, run_log.folder, spec) as actors,
            contextlib.closing(make_progress(run.progress, run.xpid, run.log_interval_s, console)) as progress,
        ):
            training = Training(config, actors=actors, store=store, run_log=run_log, progress=progress, monitor=monitor)
            training.run(stop, saved)
            summary = training.summary()
            if linger and not stop.is_set():
                logger.info("trained to the end; waiting for SIGTERM. %s", summary)
                monitor.note_finished()
                stop.wait()
            return summary


@contextlib.contextmanager
def _logging_to(console: Console) -> Iterator[None]:
    """Messages go above the live table on a terminal, else to standard error, which leaves standard output to JSON."""
    handler: logging.Handler
    if console.is_interactive:
        handler = RichHandler(console=console, show_path=False)
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _record_settings(folder: Path, settings: dict[str, object]) -> None:
    text = yaml.safe_dump(settings, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    logger.info("settings: %s", " ".join(f"{name}={value}" for name, value in settings.items()))


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second one raises KeyboardInterrupt."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        text = f"\n{signal.Signals(number).name}: ending with a checkpoint; once more to abort\n"
        # Not print: it raises where the signal came in the middle of another write to the same stream.
        with contextlib.suppress(OSError):
            os.write(STDERR, text.encode())

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _set_threads(learner_threads: int, num_local_processes: int) -> None:
    torch.set_num_threads(learner_threads or min(4, max(1, num_cores() - num_local_processes)))
