"""The books of a pool: what became of every env-step, from its own stats or from a learner's /metrics."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families


def imbalance(stats: Mapping[str, int]) -> int:
    """Env-steps that the books have lost sight of: 0 when every sampled one is counted once more and no more."""
    dropped = sum(value for name, value in stats.items() if name.startswith("steps_dropped_"))
    return stats["steps_sampled"] - stats["steps_delivered"] - dropped - stats["steps_in_flight"]


def read_metrics(text: str) -> dict[str, int]:
    """The books in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/).

    Named as in the pool's stats. A ValueError for a text that is none.
    """
    books: dict[str, int] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "kubebeast_steps_total":
                books[f"steps_{sample.labels['outcome']}"] = int(sample.value)
            elif sample.name == "kubebeast_steps_in_flight":
                books["steps_in_flight"] = int(sample.value)
    return books
