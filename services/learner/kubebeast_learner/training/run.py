"""A run of a training: its folder, its log and the checkpoint that it resumes."""

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import torch

from kubebeast_common.access.places import is_url, local
from kubebeast_common.cli.settings import as_settings
from kubebeast_common.process.stopping import Stop
from kubebeast_common.seeds import derived_seed
from kubebeast_common.volume import is_full
from kubebeast_learner.actors.base import Actors, ActorsError
from kubebeast_learner.algorithm.precision import repeat_results
from kubebeast_learner.algorithm.skipped import DivergedError
from kubebeast_learner.config import ConfigError, RunConfig, TrainingConfig
from kubebeast_learner.config.resuming import changes, check_resume
from kubebeast_learner.curriculum.base import CurriculumError
from kubebeast_learner.curriculum.choice import load_levels
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.league.league import League, make_league
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores, num_threads
from kubebeast_learner.machine.out_of_memory import NotEnoughMemoryError
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.notices.watch import watching
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.ranks.group import RankLostError, first_ranks
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.run.callbacks import CallbackError, Callbacks, load_callbacks
from kubebeast_learner.run.checkpoint import CheckpointError, CheckpointStore
from kubebeast_learner.run.initial_weights import InitialWeights, find_state, read_initial
from kubebeast_learner.run.state import Checkpoint, taking_over
from kubebeast_learner.run.trackers import load_trackers
from kubebeast_learner.training.deciding import keep_decided
from kubebeast_learner.training.loop import Training
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.process import EndedError, TrainingProcess
from kubebeast_learner.training.progress import Mode, make_progress
from kubebeast_learner.training.run_folder import RunFolder, RunFolderError
from kubebeast_runs.best.judging import EvaluationScores
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.files.room import POLL_S
from kubebeast_runs.home import LocalHome, RunHome, open_home
from kubebeast_runs.lock import BusyError
from kubebeast_runs.log import RunLog
from kubebeast_runs.rank_log import RankLog
from kubebeast_runs.trackers.own import MakeTracker

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2
FAILURES = (
    *(ActorsError, CallbackError, CheckpointError, CurriculumError, DivergedError, ModelSpecError),
    *(LeaseLostError, NotEnoughMemoryError, OSError, RankLostError, RunFolderError),
)
"""Errors that end a run with one line in its log."""

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
Opened = TypeVar("Opened")
OpenLog = Callable[[], RunLog | RankLog]


@dataclass(frozen=True, slots=True)
class Run(Generic[ConfigT]):
    """A run that is ready to train: its folder is locked, and its checkpoint is read."""

    process: TrainingProcess[ConfigT]
    config: ConfigT
    log: RunLog | RankLog
    home: RunHome
    store: CheckpointStore
    saved: tuple[str, Checkpoint] | None
    """Path and state of the checkpoint to resume; None for a new run."""
    callbacks: Callbacks
    levels: Levels | None
    """Curriculum of the run; None without one."""
    league: League | None
    """Opponents of the run; None if all agents learn."""
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
    make_callbacks = load_callbacks(config.run)
    make_levels = load_levels(config.curriculum, config.run.log_info)
    trackers = load_trackers(config.run) if place.is_first else []
    with (
        _open_home(config.run, place, process.stop) as home,
        _wait_for_folder(_log_of(config.run, place, home, trackers), config.run, process.stop) as log,
        _as_messages(),
    ):
        home.begin(log.failures)
        keep_freed_memory()
        if config.run.deterministic:
            repeat_results()
        device = choose_device(config.run.device, place)  # a missing one is refused before the run's folder records it
        torch.manual_seed(config.run.seed)
        store = _store_of(config.run, home)
        saved = first_ranks(_load_newest(store) or _load_fork(config.run) if place.is_first else None)
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
        # A resumed run must not repeat its earlier draws.
        levels = make_levels(derived_seed(config.run.seed, place.rank, saved[1].step if saved else 0))
        league = make_league(config, saved[1].step if saved else 0)
        run = Run(process, config, log, home, store, saved, callbacks, levels, league, initial, monitor or Monitor())
        run.monitor.num_crashes = log.num_crashes
        yield run
        log.successful = True
        if process.writes_json and process.summary:
            logger.info("%s", process.summary)
            process.summary = ""


def train(run: Run[ConfigT], actors: Actors, *, linger_s: float = 0.0) -> bool:
    """Trains to the end or to a signal, and returns True.

    Returns False without training if the environment has decided on settings, which the process now has: another run
    with them is to be opened. Raises the errors of `Training.run`, which `open_run` logs.

    linger_s: Longest wait of a completed training for a signal, in seconds.
    """
    config, place, stop = run.config.run, run.process.place, run.process.stop
    mode: Mode = config.progress if place.is_first else "none"
    progress = make_progress(mode, config.xpid, config.log_interval_s, run.process.console)
    with contextlib.closing(progress), watching(config.node_notice, place, run.monitor.notices):
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
            levels=run.levels,
            league=run.league,
            require_run=_requirement(run),
        )
        training.run(stop, run.saved, run.initial)
        if training.decided is not None:
            run.process.decide(training.decided)
            return False
        if training.is_complete:
            stop.status = 0
        summary = training.summary()
        if not (training.is_complete or stop.is_set() or place.is_on_one_machine):
            # After a success, the agent would wait minutes for the one that has left, and not restart this rank.
            raise RankLostError("a rank elsewhere was asked to stop; torchrun starts those again that are left")
        if linger_s and not stop.is_set():
            run.monitor.note_finished()
            logger.info("trained to the end; waiting for SIGTERM. %s", summary)
            stop.wait_for_signal(linger_s)
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


@contextlib.contextmanager
def _open_home(run: RunConfig, place: Place, stop: Stop) -> Iterator[RunHome]:
    """Opens the place of the run; on other ranks than the first, a folder without files.

    Raises ConfigError if a bucket cannot be used or another process trains the run, and EndedError if it does not
    answer, if its last files cannot be written at the end, or if stopped before.
    """
    if not place.is_first:
        yield LocalHome(Path(tempfile.gettempdir()) if is_url(run.savedir) else local(run.savedir), run.xpid)
        return
    try:
        home = _when_free(lambda: open_home(run.savedir, run.xpid, stop), run, stop)
    except InterruptedError as error:
        raise EndedError(stop.exit_status) from error
    except OSError as error:  # no setting is wrong if a store does not answer: another attempt may succeed
        logger.error("savedir = %r: %s", run.savedir, error)
        raise EndedError(EXIT_FAILED) from error
    with _as_messages(), home:
        yield home


def _log_of(run: RunConfig, place: Place, home: RunHome, trackers: Sequence[MakeTracker]) -> OpenLog:
    if place.is_first:
        return partial(RunLog, home.savedir, run.xpid, trackers)
    return partial(RankLog, home.savedir, run.xpid)


def _requirement(run: Run[ConfigT]) -> Callable[[], None]:
    """Returns a function that raises an error if the run no longer belongs to this process."""
    if not run.process.place.is_first:  # other ranks may have no folder, as in pods of their own
        return lambda: None
    folder = RunFolder(run.log.folder)

    def require() -> None:
        run.home.require()
        folder.require()

    return require


def _when_free(opening: Callable[[], Opened], run: RunConfig, stop: Stop) -> Opened:
    """Calls `opening`, again and again while another process trains the run, if that should be waited for.

    Raises EndedError if stopped before, and the errors of `opening`.
    """
    is_waiting = False
    while True:
        try:
            return opening()
        except BusyError as error:
            if not run.wait_for_run:
                raise
            if not is_waiting:
                logger.warning("%s; waiting until it ends, SIGTERM ends the wait", error)
            is_waiting = True
        if stop.wait(POLL_S):
            raise EndedError(stop.exit_status)


def _wait_for_folder(open_log: OpenLog, run: RunConfig, stop: Stop) -> RunLog | RankLog:
    """Opens the log of the run as soon as its volume takes a folder; raises EndedError if stopped before.

    Raises ConfigError if the folder cannot be written for another reason.
    """
    is_waiting = False
    while True:
        try:
            return _when_free(open_log, run, stop)
        except OSError as error:
            if not is_full(error):
                raise ConfigError(f"savedir = {run.savedir!r}: {error}") from error
            if not is_waiting:
                text = "%s cannot be made or locked: %s; waiting until it can, SIGTERM ends the wait"
                logger.warning(text, error.filename or run.savedir, error.strerror)
            is_waiting = True
        if stop.wait(POLL_S):
            raise EndedError(stop.exit_status)


def _store_of(run: RunConfig, home: RunHome) -> CheckpointStore:
    is_evaluated = run.best_by == "evaluation"
    scores = EvaluationScores(run.savedir, run.xpid, run.best_evaluator).read if is_evaluated else None
    return CheckpointStore(home.storage, run.keep_checkpoints, run.keep_best, scores)


def _load_newest(store: CheckpointStore) -> tuple[str, Checkpoint] | None:
    saved = store.load_newest()
    if saved is None:
        return None
    place, state = saved
    checkpoint = Checkpoint.of(place, state)
    checkpoint.require_resumable(place)
    return place, checkpoint


def _load_fork(run: RunConfig) -> tuple[str, Checkpoint] | None:
    """Reads the checkpoint of another run that a new one goes on with, if there is one."""
    if not run.fork_from:
        return None
    found = find_state("fork_from", run.fork_from, run.savedir)
    checkpoint = Checkpoint.of(found.place, found.state)
    checkpoint.require_resumable(found.place)
    return found.place, replace(checkpoint, config={**checkpoint.config, "seed": run.seed})


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
