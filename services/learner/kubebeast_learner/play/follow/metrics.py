"""Metrics and liveness of a process that follows a run."""

import time
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_common.metrics import COUNTER, GAUGE, Labelling, Row, TableCollector, Values

LONGEST_TURN_S = 600.0
"""Longest time between two steps of the environments, or for the load of a checkpoint, in seconds."""

EVALUATION = (
    Row(GAUGE, "kubebeast_eval_step", "Env-steps of the last checkpoint that was played.", "step"),
    Row(
        GAUGE,
        "kubebeast_eval_lag_steps",
        "Env-steps between the last checkpoint that was played and the newest one.",
        "lag_steps",
    ),
    Row(GAUGE, "kubebeast_eval_return_mean", "Mean unclipped return of the last checkpoint's episodes.", "mean_return"),
    Row(GAUGE, "kubebeast_eval_return_std", "Standard deviation of these returns.", "std_return"),
    Row(GAUGE, "kubebeast_eval_episode_length_steps_mean", "Mean length of these episodes.", "mean_length"),
    Row(GAUGE, "kubebeast_eval_play_seconds", "Time to play these episodes.", "play_s"),
    Row(
        COUNTER,
        "kubebeast_eval_checkpoints",
        "Checkpoints by outcome: played, skipped because of a newer one, or failed because they could not be played.",
        {"played": "played", "skipped": "skipped", "failed": "failed"},
        ("outcome",),
    ),
    Row(
        COUNTER,
        "kubebeast_eval_write_failures",
        "Failed writes of scores, by file. Rows of the table are kept until they can be written.",
        "write_failures",
        ("file",),
    ),
)


class FollowMetrics:
    """Progress of a follower. Written by the playing thread, readable from any."""

    def __init__(self, evaluator: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """evaluator: name of this evaluator, a label of its metrics; "" is none."""
        self._evaluator, self._clock = evaluator, clock
        self._turned_at = clock()
        self._score: Values = {}
        self.newest_step: int | None = None
        """Step of the newest checkpoint."""
        self.played_step: int | None = None
        self.num_played = self.num_skipped = self.num_failed = 0
        self.write_failures: Mapping[str, int] = {}
        """Failed writes by file, as counted by WriteFailures."""

    def note_turn(self) -> None:
        """Marks the beginning of a step of the environments, or of a look for the next checkpoint."""
        self._turned_at = self._clock()

    def note_score(self, step: int, score: Values, num_skipped: int) -> None:
        """Records a played checkpoint: `score` has values of EVALUATION, `num_skipped` older ones were skipped."""
        self._score = score
        self.played_step = step
        self.num_played += 1
        self.num_skipped += num_skipped

    def values(self) -> Values:
        """Returns the values of EVALUATION."""
        newest, played = self.newest_step, self.played_step
        return {
            **self._score,
            "step": played,
            "lag_steps": None if newest is None or played is None else max(0, newest - played),
            "played": self.num_played,
            "skipped": self.num_skipped,
            "failed": self.num_failed,
            "write_failures": {(file,): count for file, count in dict(self.write_failures).items()},
        }

    def problem(self) -> str:
        """Returns the problem of the follower; "" if it makes progress."""
        standstill_s = self._clock() - self._turned_at
        return "" if standstill_s <= LONGEST_TURN_S else f"no step of the environments for {standstill_s:.0f} s"

    def registry(self) -> CollectorRegistry:
        """Returns a registry of these metrics and those of the process."""
        registry = CollectorRegistry()
        table = TableCollector(EVALUATION, self.values)
        registry.register(Labelling(table, evaluator=self._evaluator) if self._evaluator else table)
        ProcessCollector(registry=registry)
        return registry
