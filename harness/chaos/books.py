"""The books of a pool: outcomes of all env-steps, from its stats or from a learner's /metrics."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families


def imbalance(stats: Mapping[str, int]) -> int:
    """Returns the number of unaccounted env-steps: 0 if every sampled step has exactly one outcome."""
    dropped = sum(value for name, value in stats.items() if name.startswith("steps_dropped_"))
    return stats["steps_sampled"] - stats["steps_delivered"] - dropped - stats["steps_in_flight"]


def read_metrics(text: str) -> dict[str, int]:
    """Reads the books from Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/).

    The names are those of the pool's stats. Raises ValueError for a text in another format.
    """
    books: dict[str, int] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "kubebeast_steps_total":
                books[f"steps_{sample.labels['outcome']}"] = int(sample.value)
            elif sample.name == "kubebeast_steps_in_flight":
                books["steps_in_flight"] = int(sample.value)
    return books
