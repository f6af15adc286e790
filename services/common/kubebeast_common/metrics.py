"""Metrics as tables: a row names one and says where its values come from.

Names and units follow https://prometheus.io/docs/practices/naming/; a counter's "_total" is added by the client.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Distribution(Protocol):
    """A histogram: histogram.Histogram, kubebeast_native.Histogram."""

    @property
    def bounds(self) -> Sequence[float]:
        """Upper ones of all buckets but the last, ascending."""

    @property
    def counts(self) -> Iterable[int]:
        """Values in each bucket alone."""

    @property
    def sum(self) -> float: ...


COUNTER, GAUGE, HISTOGRAM = CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
Family = type[CounterMetricFamily] | type[GaugeMetricFamily] | type[HistogramMetricFamily]

Labelled = Mapping[tuple[str, ...], float]
Value = float | Distribution | Labelled | None
"""Labelled: of a metric whose labels' values are known only while it runs; there must be few of them."""
Values = Mapping[str, Value]


class Row(NamedTuple):
    """One metric and where its samples come from."""

    family: Family
    name: str
    help: str
    source: str | Mapping[str, str]
    """The value's name, or for a metric with one label of known values the value's name for each of these."""
    labels: tuple[str, ...] = ()


def sample_names(row: Row) -> list[str]:
    """What its samples are called in a scrape."""
    if row.family is HISTOGRAM:
        return [f"{row.name}_{part}" for part in ("bucket", "sum", "count")]
    return [f"{row.name}_total" if row.family is COUNTER else row.name]


class TableCollector(Collector):
    """The rows of a table, filled at every scrape; what has no value is left out."""

    def __init__(self, table: Sequence[Row], read: Callable[[], Values]) -> None:
        """read: the values by name, from any thread."""
        self._table = table
        self._read = read

    def collect(self) -> Iterable[Metric]:
        values = self._read()
        return [_filled(row, values) for row in self._table]


class Labelling(Collector):
    """Another collector's metrics, every sample of them with further labels."""

    def __init__(self, collector: Collector, **labels: str) -> None:
        self._collector = collector
        self._labels = labels

    def collect(self) -> Iterable[Metric]:
        for metric in self._collector.collect():
            metric.samples = [sample._replace(labels={**sample.labels, **self._labels}) for sample in metric.samples]
            yield metric


def _filled(row: Row, values: Values) -> Metric:
    family = row.family(row.name, row.help, labels=row.labels)
    sources = {"": row.source} if isinstance(row.source, str) else row.source
    for label_value, source in sources.items():
        value = values.get(source)
        labels = (label_value,) if label_value else ()
        if isinstance(family, HistogramMetricFamily):
            _add_distribution(family, labels, value)
        elif isinstance(value, Mapping):
            for names, number in value.items():
                family.add_metric(names, number)
        elif isinstance(value, (int, float)):
            family.add_metric(labels, value)
    return family


def _add_distribution(family: HistogramMetricFamily, labels: Sequence[str], value: Value) -> None:
    """Prometheus's buckets are cumulative."""
    if value is None or isinstance(value, (int, float, Mapping)):
        return
    bounds = [*map(floatToGoString, value.bounds), "+Inf"]
    family.add_metric(labels, list(zip(bounds, accumulate(value.counts), strict=True)), value.sum)
