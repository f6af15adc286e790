"""Process of a follower: signals, log, HTTP, exit status."""

import contextlib
import logging
import threading
from contextlib import AbstractContextManager
from pathlib import Path

from kubebeast_common import log
from kubebeast_common.http_endpoint import HttpEndpoint
from kubebeast_common.process.stopping import stop_on_signals
from kubebeast_common.volume import is_full
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.play.follow.follower import POLL_S, Follower
from kubebeast_learner.play.follow.metrics import FollowMetrics
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.folder import existing_run, place_of
from kubebeast_runs.home import files_of, open_home
from kubebeast_runs.parts import evaluation
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
    metrics = FollowMetrics(config.name)
    with stop_on_signals("ending") as stop, _http_endpoint(config.http_address, metrics):
        try:
            xpid = _wait_for_run(config, stop, metrics)
            if xpid is None:
                return stop.exit_status
            log.note(run_id=xpid, evaluator=config.name)
            logger.info("following %s", place_of(config.savedir, xpid))
            is_played = _play(config, xpid, stop, metrics)
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except (OSError, LeaseLostError) as error:
            logger.error("%s cannot be followed: %s", place_of(config.savedir, config.xpid), error)
            return EXIT_FAILED
    return stop.exit_status if is_played else EXIT_FAILED


def _wait_for_run(config: EvalConfig, stop: threading.Event, metrics: FollowMetrics) -> str | None:
    """Returns the name of the run as soon as it exists; None if stopped before. Raises ConfigError and OSError."""
    is_waiting = False
    while (xpid := existing_run(config.savedir, config.xpid)) is None:
        if not is_waiting:
            logger.info("waiting for the run %s", place_of(config.savedir, config.xpid))
        is_waiting = True
        metrics.note_turn()
        if stop.wait(POLL_S):
            return None
    return xpid


def _play(config: EvalConfig, xpid: str, stop: threading.Event, metrics: FollowMetrics) -> bool:
    """Plays the checkpoints; returns True if all went well, or if stopped. Raises ConfigError and OSError."""
    try:
        home = open_home(config.savedir, xpid, stop, evaluation(config.name))
    except InterruptedError:
        return True
    with home:
        scores = _open_scores(home.savedir / xpid, config.name, stop, metrics)
        if scores is None:
            return True
        with scores:
            home.begin(scores.failures)
            return Follower(config, xpid, files_of(config.savedir, xpid), scores, stop, metrics).run()


def _open_scores(folder: Path, evaluator: str, stop: threading.Event, metrics: FollowMetrics) -> ScoreLog | None:
    """Opens the scores of an evaluator, and waits while the volume is full; None if stopped before.

    Raises ConfigError and OSError.
    """
    is_waiting = False
    while True:
        metrics.note_turn()
        try:
            return ScoreLog(folder, evaluator)
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
