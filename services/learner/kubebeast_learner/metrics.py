"""What Prometheus is told of a learner, metric by metric.

Names and units follow https://prometheus.io/docs/practices/naming/; a counter's "_total" is added by the client.
Counters of streams, steps and rollouts start at 0 with the process.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from kubebeast_learner.run_stats import Snapshot

Values = Mapping[str, float | None]


class Row(NamedTuple):
    """One metric and where its samples come from."""

    family: type[CounterMetricFamily] | type[GaugeMetricFamily]
    name: str
    help: str
    source: str | Mapping[str, str]
    """The value's name, or for a metric with one label the value's name for each of its values."""
    label: str = ""


COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily

ACTORS = (
    Row(
        COUNTER,
        "kubebeast_steps",
        "Env-steps by what became of them; sampled ones are all the others and kubebeast_steps_in_flight together.",
        {
            "sampled": "steps_sampled",
            "delivered": "steps_delivered",
            "dropped_partial": "steps_dropped_partial",
            "dropped_stale": "steps_dropped_stale",
            "dropped_close": "steps_dropped_close",
        },
        "outcome",
    ),
    Row(GAUGE, "kubebeast_steps_in_flight", "Env-steps sampled and neither delivered nor dropped.", "steps_in_flight"),
    Row(GAUGE, "kubebeast_streams", "Streams of env-servers.", "streams"),
    Row(GAUGE, "kubebeast_streams_parked", "Streams held back by a full rollout queue.", "streams_parked"),
    Row(GAUGE, "kubebeast_envs", "Environments of all streams.", "envs"),
    Row(COUNTER, "kubebeast_streams_accepted", "Streams that were welcomed.", "streams_accepted"),
    Row(
        COUNTER,
        "kubebeast_streams_ended",
        "Streams that ended, by reason.",
        {
            reason: f"streams_ended_{reason}"
            for reason in ("bye", "disconnect", "invalid", "timeout", "dropped", "closed")
        },
        "reason",
    ),
    Row(COUNTER, "kubebeast_streams_refused", "Streams refused at their Hello.", "streams_rejected"),
    Row(
        COUNTER,
        "kubebeast_streams_unauthenticated",
        "Streams without a valid bearer token.",
        "streams_unauthenticated",
    ),
    Row(COUNTER, "kubebeast_dials_failed", "Env-servers dialled in vain.", "dials_failed"),
    Row(COUNTER, "kubebeast_env_interruptions", "Environments that failed under way.", "env_interruptions"),
    Row(COUNTER, "kubebeast_actor_restarts", "Local actor processes started again.", "restarts"),
    Row(GAUGE, "kubebeast_rollouts_queued", "Finished unrolls that wait for the learner.", "rollouts_queued"),
    Row(COUNTER, "kubebeast_rollouts_completed", "Unrolls of full length.", "rollouts_completed"),
    Row(COUNTER, "kubebeast_rollouts_partial", "Unrolls that a stream's end cut short.", "rollouts_partial"),
    Row(
        COUNTER,
        "kubebeast_rollouts_dropped",
        "Unrolls dropped: too short, or too old.",
        {"partial": "rollouts_dropped_partial", "stale": "rollouts_dropped_stale"},
        "reason",
    ),
    Row(COUNTER, "kubebeast_inference_batches", "Batches that the model acted on.", "inference_batches"),
    Row(COUNTER, "kubebeast_inference_rows", "Rows of those batches.", "inference_rows"),
    Row(COUNTER, "kubebeast_received_bytes", "Bytes of messages from env-servers.", "bytes_received"),
    Row(COUNTER, "kubebeast_sent_bytes", "Bytes of messages to env-servers.", "bytes_sent"),
)

TRAINING = (
    # Gauges: a learner that resumes goes back to the newest checkpoint.
    Row(GAUGE, "kubebeast_learner_step", "Env-steps trained on, over all lives of the run.", "step"),
    Row(GAUGE, "kubebeast_learner_total_steps", "Env-steps to train for.", "total_steps"),
    Row(
        GAUGE,
        "kubebeast_learner_starved_ratio",
        "Share of the last half minute that the learner waited for rollouts: 1 is a fleet far too small.",
        "starved_ratio",
    ),
    Row(COUNTER, "kubebeast_updates", "Updates of the weights, over all lives of the run.", "num_updates"),
    Row(COUNTER, "kubebeast_updates_skipped", "Updates skipped for a loss that was not finite.", "num_skipped_updates"),
    Row(GAUGE, "kubebeast_policy_lag_updates", "Mean age of the weights that acted, in the last batch.", "policy_lag"),
    Row(COUNTER, "kubebeast_episodes", "Finished episodes, over all lives of the run.", "episodes"),
    Row(
        GAUGE,
        "kubebeast_episode_return_mean",
        "Mean unclipped return of the newest episodes.",
        "mean_episode_return",
    ),
    Row(GAUGE, "kubebeast_checkpoint_age_seconds", "Time since the last checkpoint.", "checkpoint_age_s"),
    Row(COUNTER, "kubebeast_checkpoint_failures", "Checkpoints that could not be saved.", "checkpoint_failures"),
)


class TableCollector(Collector):
    """The rows of a table, filled at every scrape; what has no value is left out."""

    def __init__(self, table: Sequence[Row], read: Callable[[], Values]) -> None:
        """read: the values by name, from any thread."""
        self._table = table
        self._read = read

    def collect(self) -> Iterable[Metric]:
        values = self._read()
        return [_filled(row, values) for row in self._table]


def make_registry(actors: Callable[[], Values], snapshot: Callable[[], Snapshot | None]) -> CollectorRegistry:
    """The metrics of one training and of its process. actors: Actors.stats. snapshot: the newest. From any thread."""

    def training() -> Values:
        newest = snapshot()
        return {} if newest is None else newest.flat()

    registry = CollectorRegistry()
    registry.register(TableCollector(ACTORS, actors))
    registry.register(TableCollector(TRAINING, training))
    ProcessCollector(registry=registry)
    return registry


def _filled(row: Row, values: Values) -> Metric:
    family = row.family(row.name, row.help, labels=[row.label] if row.label else [])
    sources = {"": row.source} if isinstance(row.source, str) else row.source
    for label_value, source in sources.items():
        value = values.get(source)
        if value is not None:
            family.add_metric([label_value] if row.label else [], value)
    return family
