"""Metrics as tables: each row has the name of a metric and the source of its values.

Names and units follow https://prometheus.io/docs/practices/naming/. The client adds the "_total" of counters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Distribution(Protocol):
    """A histogram: histogram.Histogram or kubebeast_native.Histogram."""

    @property
    def bounds(self) -> Sequence[float]:
        """Upper bounds of all buckets except the last, ascending."""

    @property
    def counts(self) -> Iterable[int]:
        """Number of values in each bucket, not cumulative."""

    @property
    def sum(self) -> float: ...


COUNTER, GAUGE, HISTOGRAM = CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
Family = type[CounterMetricFamily] | type[GaugeMetricFamily] | type[HistogramMetricFamily]

Labelled = Mapping[tuple[str, ...], float]
Value = float | Distribution | Labelled | None
"""Value of a metric. Labelled is for label values that are known only at run time; there must be few of them."""
Values = Mapping[str, Value]


class Row(NamedTuple):
    """A metric and the source of its samples."""

    family: Family
    name: str
    help: str
    source: str | Mapping[str, str]
    """Name of the value; for a metric with one label of known values, names of values by label value."""
    labels: tuple[str, ...] = ()


def sample_names(row: Row) -> list[str]:
    """Returns the names of a row's samples in a scrape."""
    if row.family is HISTOGRAM:
        return [f"{row.name}_{part}" for part in ("bucket", "sum", "count")]
    return [f"{row.name}_total" if row.family is COUNTER else row.name]


class TableCollector(Collector):
    """A collector of the rows of a table. It reads values at each scrape and omits samples without a value."""

    def __init__(self, table: Sequence[Row], read: Callable[[], Values]) -> None:
        """read returns the values by name; any thread may call it."""
        self._table = table
        self._read = read

    def collect(self) -> Iterable[Metric]:
        values = self._read()
        return [_filled(row, values) for row in self._table]


class Labelling(Collector):
    """A collector that adds labels to all samples of another collector."""

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
    """Adds cumulative buckets, as Prometheus requires. Ignores a value that is no distribution."""
    if value is None or isinstance(value, (int, float, Mapping)):
        return
    bounds = [*map(floatToGoString, value.bounds), "+Inf"]
    family.add_metric(labels, list(zip(bounds, accumulate(value.counts), strict=True)), value.sum)
