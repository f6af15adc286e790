"""What surrounds a training in its process: signals, threads, logs, the exit status."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console
from rich.logging import RichHandler

from kubebeast_common import log
from kubebeast_learner.actors.base import Actors, ActorsError
from kubebeast_learner.algorithm.learner import DivergedError
from kubebeast_learner.config import ConfigError, RanksConfig, RunConfig, TrainingConfig
from kubebeast_learner.config.resuming import changes, check_resume
from kubebeast_learner.config.sources import as_settings
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.ranks.group import RankLostError, first_ranks, open_group
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.ranks.settings import require_alike
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.run.log import RunLog, default_xpid
from kubebeast_learner.run.rank_log import RankLog
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.progress import Mode, make_progress
from kubebeast_learner.training.stopping import stop_on_signals

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2
ALONE_CONFIG = RanksConfig()

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
    place: Place = ALONE,
    ranks: RanksConfig = ALONE_CONFIG,
) -> int:
    """Trains to the end, to a signal or to an error, with everything logged. Returns the exit status.

    num_local_processes: processes beside this one that need a core each. monitor: is told how the training does.
    linger: a training that has come to its end waits for a signal before its actors are closed.
    place, ranks: among the processes that train together, each of which calls this, and how they wait for each other.
    ConfigError when the run's folder cannot be written, or the ranks do not meet or have different settings.
    """
    with open_group(place, choose_device(config.run.device, place), ranks.rank_timeout_s):
        require_alike(config)
        savedir, xpid = config.run.savedir.expanduser().absolute(), first_ranks(config.run.xpid or default_xpid())
        config = replace(config, run=replace(config.run, xpid=xpid, savedir=savedir))
        member = _Member(place, ranks.share_timeout_s, num_local_processes, monitor or Monitor(), linger)
        return _run(config, open_actors, member)


@dataclass(frozen=True, slots=True)
class _Member:
    """What a process is to the training, beside its configuration."""

    place: Place
    patience_s: float
    num_local_processes: int
    monitor: Monitor
    linger: bool


def _run(config: ConfigT, open_actors: OpenActors[ConfigT], member: _Member) -> int:
    savedir, xpid, place = config.run.savedir, config.run.xpid, member.place
    console = Console()
    try:
        run_log = RunLog(savedir, xpid) if place.is_first else RankLog(savedir, xpid)
    except OSError as error:
        raise ConfigError(f"savedir = {str(savedir)!r}: {error}") from error
    with _logging_to(console, config.run, place) as handler, run_log:
        try:
            keep_freed_memory()
            _set_threads(config.run.learner_threads, member.num_local_processes, place.num_local_ranks)
            with stop_on_signals(handler, "ending with a checkpoint") as stop:
                summary = _train(config, open_actors, run_log, console, stop, member)
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except (ActorsError, CheckpointError, DivergedError, ModelSpecError, OSError, RankLostError) as error:
            logger.error("the run failed: %s", error)
            return EXIT_FAILED
        except Exception:
            logger.exception("the run failed")
            return EXIT_FAILED
        run_log.successful = True
        if not place.is_first:
            return 0
        if isinstance(handler.formatter, log.JsonFormatter):
            logger.info("%s", summary)
            return 0
    print(summary, flush=True)
    return 0


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
    choose_device(run.device, place)  # one that is not here is refused before the run's folder records it
    torch.manual_seed(run.seed)
    store = CheckpointStore(run_log.folder, run.keep_checkpoints)
    saved = first_ranks(store.load_newest() if place.is_first else None)
    _settle(config, run_log, saved)
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
            # An agent that saw success would wait minutes for the one that has left, and not start this rank again.
            raise RankLostError("a rank elsewhere was asked to stop; torchrun starts those again that are left")
        if member.linger and not stop.is_set():
            monitor.note_finished()
            logger.info("trained to the end; waiting for SIGTERM. %s", summary)
            stop.wait()
        return summary


def _settle(config: TrainingConfig, run_log: RunLog | RankLog, saved: tuple[Path, Mapping[str, Any]] | None) -> None:
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
def _logging_to(console: Console, run: RunConfig, place: Place) -> Iterator[logging.Handler]:
    """Messages go above the live table on a terminal, else to standard error, which leaves standard output to JSON."""
    handler: logging.Handler
    if console.is_interactive and run.log_format != "json" and place.is_first:
        handler = RichHandler(run.log_level.upper(), console=console, show_path=False)
    else:
        handler = log.make_handler(run.log_level, run.log_format)
    root, own = logging.getLogger(), logging.getLogger("kubebeast_learner")
    levels = root.level, own.level
    root.setLevel(logging.INFO)  # that of out.log; what libraries say below it helps nobody
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
