"""The process around a follower: signals, log, HTTP, the exit status."""

import contextlib
import logging
import threading
from contextlib import AbstractContextManager
from pathlib import Path

from kubebeast_common import log
from kubebeast_common.http_endpoint import HttpEndpoint
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.play.follow.follower import POLL_S, Follower
from kubebeast_learner.play.follow.metrics import FollowMetrics
from kubebeast_learner.run.scores import ScoreLog
from kubebeast_learner.training.stopping import stop_on_signals

logger = logging.getLogger(__name__)

EXIT_FAILED, EXIT_USAGE = 1, 2


def follow(config: EvalConfig) -> int:
    """Follows the run from wherever it stands.

    Returns the exit status: 0 at its end and after a signal, 1 where its last checkpoint could not be played or a score
    not be written, 2 where the settings do not fit the run. ConfigError when http_address cannot be bound.
    """
    handler = log.configure("info")
    metrics = FollowMetrics()
    with stop_on_signals(handler, "ending") as stop, _http_endpoint(config.http_address, metrics):
        folder = _wait_for_run(config, stop, metrics)
        if folder is None:
            return 0
        log.note(run_id=folder.name)
        logger.info("following %s", folder)
        try:
            with ScoreLog(folder) as scores:
                is_played = Follower(config, folder, scores, stop, metrics).run()
        except ConfigError as error:
            logger.error("%s", error)
            return EXIT_USAGE
        except OSError as error:
            logger.error("%s cannot be followed: %s", folder, error)
            return EXIT_FAILED
    return 0 if is_played else EXIT_FAILED


def _wait_for_run(config: EvalConfig, stop: threading.Event, metrics: FollowMetrics) -> Path | None:
    """The run's folder, which may not be there yet; None when stopped before it is."""
    folder = config.savedir.expanduser() / config.xpid
    if not folder.is_dir():
        logger.info("waiting for the run %s", folder)
    while not folder.is_dir():
        metrics.note_turn()
        if stop.wait(POLL_S):
            return None
    return folder.resolve()


def _http_endpoint(address: str, metrics: FollowMetrics) -> AbstractContextManager[object]:
    """ConfigError when the address cannot be bound; "" serves nothing."""
    if not address:
        return contextlib.nullcontext()
    try:
        endpoint = HttpEndpoint(address, health=metrics.problem, readiness=lambda: "", registry=metrics.registry())
    except OSError as error:
        raise ConfigError(f"http_address = {address!r}: {error.strerror}") from error
    logger.info("serving HTTP on port %d", endpoint.port)
    return endpoint
