"""A run of a training: its folder, its log and the checkpoint that it resumes."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import torch

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.volume import is_full
from kubebeast_learner.actors.base import Actors, ActorsError
from kubebeast_learner.algorithm.precision import repeat_results
from kubebeast_learner.algorithm.skipped import DivergedError
from kubebeast_learner.config import ConfigError, TrainingConfig
from kubebeast_learner.config.resuming import changes, check_resume
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores, num_threads
from kubebeast_learner.machine.out_of_memory import NotEnoughMemoryError
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.ranks.group import RankLostError, first_ranks
from kubebeast_learner.run.callbacks import CallbackError, Callbacks, load_callbacks
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.run.initial_weights import InitialWeights, read_initial
from kubebeast_learner.run.own_trackers import load_trackers
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_learner.training.deciding import keep_decided
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.process import EndedError, TrainingProcess
from kubebeast_learner.training.progress import Mode, make_progress
from kubebeast_learner.training.run_folder import RunFolderError
from kubebeast_learner.training.stopping import Stop
from kubebeast_runs.files.room import POLL_S
from kubebeast_runs.log import RunLog
from kubebeast_runs.rank_log import RankLog
from kubebeast_runs.storage.choice import storage_of

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2
FAILURES = (
    *(ActorsError, CallbackError, CheckpointError, DivergedError, ModelSpecError),
    *(NotEnoughMemoryError, OSError, RankLostError, RunFolderError),
)
"""Errors that end a run with one line in its log."""

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
OpenLog = Callable[[], RunLog | RankLog]


@dataclass(frozen=True, slots=True)
class Run(Generic[ConfigT]):
    """A run that is ready to train: its folder is locked, and its checkpoint is read."""

    process: TrainingProcess[ConfigT]
    config: ConfigT
    log: RunLog | RankLog
    store: CheckpointStore
    saved: tuple[str, Checkpoint] | None
    """Path and state of the checkpoint to resume; None for a new run."""
    callbacks: Callbacks
    initial: InitialWeights | None
    """Weights that a new run begins with; None if no setting names them."""
    monitor: Monitor
    """State of the training, for other threads."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint to resume."""
        return None if self.saved is None else self.saved[1]


@contextlib.contextmanager
def open_run(
    process: TrainingProcess[ConfigT],
    *,
    num_local_processes: Callable[[ConfigT], int],
    monitor: Monitor | None = None,
) -> Iterator[Run[ConfigT]]:
    """Opens the run that the configuration names, as soon as its volume has room for it.

    An error in the context ends it with a message in the log, as EndedError.

    Args:
        process: Process of the training.
        num_local_processes: Returns the number of processes other than this one that need a core each.
        monitor: Receives the state of the training.

    Raises:
        ConfigError: If the folder of the run cannot be written, or if a tracker or a callback cannot be made.
        EndedError: If the run cannot be resumed, or if a signal ended the wait for its folder.
    """
    config, place = process.config, process.place
    folder = config.run.savedir / config.run.xpid
    make_callbacks = load_callbacks(config.run)
    open_log: OpenLog = partial(RankLog, config.run.savedir, config.run.xpid)
    if place.is_first:
        open_log = partial(RunLog, config.run.savedir, config.run.xpid, load_trackers(config.run))
    with _wait_for_folder(folder, open_log, process.stop) as log, _as_messages():
        keep_freed_memory()
        if config.run.deterministic:
            repeat_results()
        device = choose_device(config.run.device, place)  # a missing one is refused before the run's folder records it
        torch.manual_seed(config.run.seed)
        store = CheckpointStore(storage_of(log.folder), config.run.keep_checkpoints)
        saved = first_ranks(_load_newest(store) if place.is_first else None)
        if saved is not None:
            config = keep_decided(config, saved[1].config, saved[1].env_spec)
        is_warm = saved is None and config.run.init_from
        initial = first_ranks(
            read_initial(config.run.init_from, config.run.savedir) if place.is_first and is_warm else None
        )
        cores = num_cores() // place.num_local_ranks - num_local_processes(config)
        torch.set_num_threads(config.run.learner_threads or num_threads(device, cores))
        _settle(config, saved)
        callbacks = make_callbacks(log.folder) if place.is_first else Callbacks()
        run = Run(process, config, log, store, saved, callbacks, initial, monitor or Monitor())
        run.monitor.num_crashes = log.num_crashes
        yield run
        log.successful = True
        if process.writes_json and process.summary:
            logger.info("%s", process.summary)
            process.summary = ""


def train(run: Run[ConfigT], actors: Actors, *, linger: bool = False) -> bool:
    """Trains to the end or to a signal, and returns True.

    Returns False without training if the environment has decided on settings, which the process now has: another run
    with them is to be opened. Raises the errors of `Training.run`, which `open_run` logs.

    linger: If set, a completed training waits for a signal.
    """
    config, place, stop = run.config.run, run.process.place, run.process.stop
    mode: Mode = config.progress if place.is_first else "none"
    progress = make_progress(mode, config.xpid, config.log_interval_s, run.process.console)
    with contextlib.closing(progress):
        training = Training(
            run.config,
            actors=actors,
            store=run.store,
            run_log=run.log,
            progress=progress,
            monitor=run.monitor,
            place=place,
            patience_s=run.process.patience_s,
            callbacks=run.callbacks,
        )
        training.run(stop, run.saved, run.initial)
        if training.decided is not None:
            run.process.decide(training.decided)
            return False
        summary = training.summary()
        if not (training.is_complete or stop.is_set() or place.is_on_one_machine):
            # After a success, the agent would wait minutes for the one that has left, and not restart this rank.
            raise RankLostError("a rank elsewhere was asked to stop; torchrun starts those again that are left")
        if linger and not stop.is_set():
            run.monitor.note_finished()
            logger.info("trained to the end; waiting for SIGTERM. %s", summary)
            stop.wait_for_signal()
    run.process.summary = summary if place.is_first else ""
    return True


@contextlib.contextmanager
def _as_messages() -> Iterator[None]:
    """Logs an error that ends the run, and raises EndedError instead."""
    try:
        yield
    except ConfigError as error:
        logger.error("%s", error)
        raise EndedError(EXIT_USAGE) from error
    except FAILURES as error:
        logger.error("the run failed: %s", error)
        raise EndedError(EXIT_FAILED) from error
    except EndedError:
        raise
    except Exception as error:
        logger.exception("the run failed")
        raise EndedError(EXIT_FAILED) from error


def _wait_for_folder(folder: Path, open_log: OpenLog, stop: Stop) -> RunLog | RankLog:
    """Opens the log of the run in `folder` as soon as its volume takes a folder; raises EndedError if stopped before.

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
            raise EndedError(stop.exit_status)


def _load_newest(store: CheckpointStore) -> tuple[str, Checkpoint] | None:
    saved = store.load_newest()
    if saved is None:
        return None
    place, state = saved
    checkpoint = Checkpoint.of(place, state)
    checkpoint.require_resumable(place)
    return place, checkpoint


def _settle(config: TrainingConfig, saved: tuple[str, Checkpoint] | None) -> None:
    """Logs the settings that have changed since the checkpoint. Raises ConfigError if it forbids such a change."""
    if saved is None:
        return
    place, checkpoint = saved
    settings = as_settings(config)
    before = as_settings(TrainingConfig()) | dict(checkpoint.config)  # older checkpoints lack newer settings
    with taking_over(place, "config"):
        changed = changes(settings, before)
    check_resume(settings, before, place)
    if changed:
        logger.info(
            "changed since the checkpoint: %s", ", ".join(f"{name} {a} -> {b}" for name, (a, b) in changed.items())
        )
