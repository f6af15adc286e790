"""Process of a follower: signals, log, HTTP, exit status."""

import contextlib
import logging
import threading
from contextlib import AbstractContextManager
from pathlib import Path

from kubebeast_common import log
from kubebeast_common.http_endpoint import HttpEndpoint
from kubebeast_common.volume import is_full
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.play.follow.follower import POLL_S, Follower
from kubebeast_learner.play.follow.metrics import FollowMetrics
from kubebeast_learner.training.stopping import stop_on_signals
from kubebeast_runs.folder import folder_of
from kubebeast_runs.score_log import ScoreLog

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2


def follow(config: EvalConfig) -> int:
    """Follows the run from any state on, also before its folder exists.

    Returns the exit status: 0 at its end and after SIGTERM or SIGHUP, 130 after Ctrl-C, 1 if its last checkpoint could
    not be played or a score could not be written, 2 if the settings do not fit the run. Raises ConfigError if
    http_address cannot be bound.
    """
    log.configure("info")
    metrics = FollowMetrics()
    with stop_on_signals("ending") as stop, _http_endpoint(config.http_address, metrics):
        folder = _wait_for_run(config, stop, metrics)
        if folder is None:
            return stop.exit_status
        log.note(run_id=folder.name)
        logger.info("following %s", folder)
        try:
            scores = _open_scores(folder, stop, metrics)
            if scores is None:
                return stop.exit_status
            with scores:
                is_played = Follower(config, folder, scores, stop, metrics).run()
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except OSError as error:
            logger.error("%s cannot be followed: %s", folder, error)
            return EXIT_FAILED
    return stop.exit_status if is_played else EXIT_FAILED


def _wait_for_run(config: EvalConfig, stop: threading.Event, metrics: FollowMetrics) -> Path | None:
    """Returns the run's folder as soon as it exists; None if stopped before."""
    is_waiting = False
    while not (folder := folder_of(config.savedir, config.xpid)).is_dir():
        if not is_waiting:
            logger.info("waiting for the run %s", folder)
        is_waiting = True
        metrics.note_turn()
        if stop.wait(POLL_S):
            return None
    return folder.resolve()


def _open_scores(folder: Path, stop: threading.Event, metrics: FollowMetrics) -> ScoreLog | None:
    """Opens the scores, and waits while the volume is full; None if stopped before. Raises ConfigError and OSError."""
    is_waiting = False
    while True:
        metrics.note_turn()
        try:
            return ScoreLog(folder)
        except OSError as error:
            if not is_full(error):
                raise
            if not is_waiting:
                logger.warning("%s takes no file: %s; waiting until it does", folder, error.strerror)
            is_waiting = True
        if stop.wait(POLL_S):
            return None


def _http_endpoint(address: str, metrics: FollowMetrics) -> AbstractContextManager[object]:
    """Opens the HTTP endpoint, or none for "". Raises ConfigError if the address cannot be bound."""
    if not address:
        return contextlib.nullcontext()
    try:
        endpoint = HttpEndpoint(address, health=metrics.problem, readiness=lambda: "", registry=metrics.registry())
    except OSError as error:
        raise ConfigError(f"http_address = {address!r}: {error.strerror}") from error
    logger.info("serving HTTP on port %d", endpoint.port)
    return endpoint
