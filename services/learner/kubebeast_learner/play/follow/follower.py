"""Follower of a run: plays its checkpoints as they appear, until the run is over."""

import json
import logging
import threading
import time
from statistics import fmean

from kubebeast_common.log import fields
from kubebeast_common.process.family import reap_ended
from kubebeast_common.process.output import output_to_stderr
from kubebeast_envserver.envs.factory import EnvironmentFailure
from kubebeast_learner.config import ConfigError, EvalConfig
from kubebeast_learner.models import ModelSpecError
from kubebeast_learner.play.evaluate import Evaluation, as_json, evaluate_trained
from kubebeast_learner.play.follow.checkpoints import CheckpointFeed
from kubebeast_learner.play.follow.metrics import FollowMetrics
from kubebeast_learner.play.trained_model import make_trained
from kubebeast_learner.profiling.timer import Timer
from kubebeast_learner.run.checkpoint_file import CheckpointError, load
from kubebeast_runs.checkpoints import SavedCheckpoint
from kubebeast_runs.folder import meta_of
from kubebeast_runs.score_log import ScoreLog
from kubebeast_runs.storage.storage import Files

logger = logging.getLogger(__name__)

POLL_S = 2.0
"""Time between two looks for a new checkpoint, each of which lists the run's folder."""


class StoppedError(Exception):
    """A stop was requested before all episodes were over."""


class Follower:
    """A player of the checkpoints of a run, one after the other. Not thread-safe."""

    def __init__(
        self,
        config: EvalConfig,
        xpid: str,
        files: Files,
        scores: ScoreLog,
        stop: threading.Event,
        metrics: FollowMetrics,
    ) -> None:
        """xpid: name of the run, of which `files` are the files."""
        self._config = config
        self._xpid, self._files = xpid, files
        self._scores = scores
        self._stop = stop
        self._metrics = metrics
        self._feed = CheckpointFeed(files, scores.newest_step)
        self._look_due = Timer(POLL_S)
        self._num_deleted = 0
        self._said_stopped = False
        self._said_notes: list[str] = []
        metrics.played_step = scores.newest_step
        metrics.write_failures = scores.failures.counts

    def run(self) -> bool:
        """Plays until the run has been trained to its end, or until `stop`.

        Returns False if the last checkpoint could not be played or a score could not be written. Raises ConfigError if
        the settings do not fit the run.
        """
        while not self._stop.is_set():
            saved = self._feed.take()
            self._note_turn()
            reap_ended()  # no environment plays now, and nothing else waits for a child
            if not self._scores.is_whole:
                self._scores.write()
            if saved is not None:
                try:
                    self._play(saved)
                except StoppedError:
                    break
            elif self._is_over() and not self._config.linger:
                return self._scores.newest_step == self._feed.newest_step and self._scores.is_whole
            else:
                self._stop.wait(POLL_S)
        return True

    def _play(self, saved: SavedCheckpoint) -> None:
        """Plays and scores one checkpoint; one that cannot be played is logged and counted."""
        started_at, name = time.monotonic(), saved.file.name
        try:
            state = load(self._files, name)
            trained = make_trained(self._files.place(name), state, is_own=True, is_trusted=True)
            with output_to_stderr():  # the output of environments is not the result
                evaluation = evaluate_trained(self._config, trained, self._turn)
        except (CheckpointError, ConfigError, EnvironmentFailure, ModelSpecError) as error:
            if not self._feed.is_there(saved):
                self._num_deleted += 1
            elif isinstance(error, ConfigError):
                raise
            else:
                self._metrics.num_failed += 1
                logger.error("the checkpoint at step %d is not played: %s", saved.step, error)
            return
        self._record(saved, evaluation, time.monotonic() - started_at)

    def _record(self, saved: SavedCheckpoint, evaluation: Evaluation, play_s: float) -> None:
        skipped, self._num_deleted = self._num_deleted + self._feed.skip_older(), 0
        score = {**_score(evaluation), "play_s": play_s}
        counts = {
            "episodes": len(evaluation.episodes),
            "episodes_cut_off": sum(episode.cut_off for episode in evaluation.episodes),
            "checkpoints_skipped": skipped,
        }
        facts: dict[str, float | str] = {"saved_at": saved.file.saved_at_ns / 1e9, **_settings(evaluation)}
        if self._config.name:
            facts["evaluator"] = self._config.name
        self._scores.add(saved.step, {**score, **counts}, facts)
        self._metrics.note_score(saved.step, score, skipped)
        for note in evaluation.notes:
            if note not in self._said_notes:
                logger.warning("%s", note)
        self._said_notes = evaluation.notes
        logger.info(
            "step %s: mean return %.2f ± %.2f of %d episodes%s",
            f"{saved.step:,}",
            evaluation.mean_return,
            evaluation.std_return,
            len(evaluation.episodes),
            f"; {skipped} older checkpoints skipped" if skipped else "",
            extra=fields(step=saved.step, **score, **counts),
        )
        if self._config.json:
            print(as_json(evaluation, self._config.name), flush=True)

    def _turn(self) -> None:
        """Runs before every step of the environments. Raises StoppedError if a stop was requested."""
        if self._stop.is_set():
            raise StoppedError
        if self._look_due.is_due():
            self._feed.look()  # checkpoints that are deleted during this evaluation are counted, too
        self._note_turn()

    def _note_turn(self) -> None:
        self._metrics.newest_step = self._feed.newest_step
        self._metrics.note_turn()

    def _is_over(self) -> bool:
        """Returns True if the newest checkpoint is that of a complete training.

        Raises ConfigError for a run that never writes checkpoints. A run that was stopped or has failed may be resumed.
        """
        meta, newest = meta_of(self._files), self._feed.newest_step
        args = meta.get("args")
        settings = args if isinstance(args, dict) else {}
        if newest is None and settings.get("disable_checkpoint") is True:
            raise ConfigError(f"xpid = {self._xpid!r}: the run writes no checkpoints, disable_checkpoint is set")
        total = settings.get("total_steps")
        is_over = newest is not None and isinstance(total, int) and newest >= total
        has_stopped = bool(meta.get("date_end")) and not is_over
        if has_stopped and not self._said_stopped:
            logger.info("the training has stopped at step %s of %s; waiting for it to go on", newest or 0, total)
        self._said_stopped = has_stopped
        return is_over


def _score(evaluation: Evaluation) -> dict[str, float]:
    returns = [episode.episode_return for episode in evaluation.episodes]
    return {
        "mean_return": evaluation.mean_return,
        "std_return": evaluation.std_return,
        "min_return": min(returns),
        "max_return": max(returns),
        "mean_length": fmean(episode.length for episode in evaluation.episodes),
    }


def _settings(evaluation: Evaluation) -> dict[str, str]:
    """Returns the settings of the evaluation."""
    return {
        "env": evaluation.env,
        "preset": evaluation.preset,
        "env_kwargs": json.dumps(evaluation.env_kwargs),
        "wrappers": json.dumps(evaluation.wrappers),
        "time_limit": str(evaluation.time_limit),
        "mode": evaluation.mode,
        "seed": str(evaluation.seed),
    }
