"""What Prometheus and a probe read of a process that follows a run."""

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_common.metrics import COUNTER, GAUGE, Row, TableCollector, Values

LONGEST_TURN_S = 600.0
"""Longest time between two steps of the environments, or for the load of a checkpoint, in seconds."""

EVALUATION = (
    Row(GAUGE, "kubebeast_eval_step", "Env-steps of the checkpoint that was played last.", "step"),
    Row(
        GAUGE,
        "kubebeast_eval_lag_steps",
        "Env-steps from the checkpoint that was played last to the newest one that there is.",
        "lag_steps",
    ),
    Row(GAUGE, "kubebeast_eval_return_mean", "Mean unclipped return of its episodes.", "mean_return"),
    Row(GAUGE, "kubebeast_eval_return_std", "Standard deviation of these returns.", "std_return"),
    Row(GAUGE, "kubebeast_eval_episode_length_steps_mean", "Mean length of its episodes.", "mean_length"),
    Row(GAUGE, "kubebeast_eval_play_seconds", "How long they took to play.", "play_s"),
    Row(
        COUNTER,
        "kubebeast_eval_checkpoints",
        "Checkpoints by what became of them: played, passed over for a newer one, or not to be played.",
        {"played": "played", "skipped": "skipped", "failed": "failed"},
        ("outcome",),
    ),
)


class FollowMetrics:
    """How far the playing has come. Written by the thread that plays, read by any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turned_at = clock()
        self._score: Values = {}
        self.newest_step: int | None = None
        """Of the checkpoints that there are."""
        self.played_step: int | None = None
        self.num_played = self.num_skipped = self.num_failed = 0

    def note_turn(self) -> None:
        """The environments are about to take a step, or the next checkpoint is looked for."""
        self._turned_at = self._clock()

    def note_score(self, step: int, score: Values, num_skipped: int) -> None:
        """A checkpoint was played; score: the values of EVALUATION. num_skipped: older ones, for this one."""
        self._score = score
        self.played_step = step
        self.num_played += 1
        self.num_skipped += num_skipped

    def values(self) -> Values:
        """Of EVALUATION."""
        newest, played = self.newest_step, self.played_step
        return {
            **self._score,
            "step": played,
            "lag_steps": None if newest is None or played is None else max(0, newest - played),
            "played": self.num_played,
            "skipped": self.num_skipped,
            "failed": self.num_failed,
        }

    def problem(self) -> str:
        """What is wrong; "" while it turns."""
        standstill_s = self._clock() - self._turned_at
        return "" if standstill_s <= LONGEST_TURN_S else f"no step of the environments for {standstill_s:.0f} s"

    def registry(self) -> CollectorRegistry:
        """These metrics and those of the process."""
        registry = CollectorRegistry()
        registry.register(TableCollector(EVALUATION, self.values))
        ProcessCollector(registry=registry)
        return registry
