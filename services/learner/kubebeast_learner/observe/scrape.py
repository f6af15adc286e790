"""Pages of metrics, asked by name, and what has changed between two of them.

What a peer does not tell, an older one for example, is None.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from kubebeast_common.text import printable
from kubebeast_learner.observe.fleet.errors import WatchError

MAX_LABEL = 253
"""Characters of a label's value that are kept."""

MAX_PAGE_BYTES = 8 << 20
"""A page that is larger is refused: ten thousand streams have a third of it."""

Labels = frozenset[tuple[str, str]]


class Metrics:
    """Samples by name and labels, finite ones only."""

    def __init__(self, samples: Mapping[str, Mapping[Labels, float]], rank: str = "") -> None:
        """rank: which of several learners says so."""
        self.rank = rank
        self._samples = samples

    def __contains__(self, name: object) -> bool:
        return name in self._samples

    def value(self, name: str, **labels: str) -> float | None:
        """The sample with exactly these labels."""
        return self._samples.get(name, {}).get(frozenset(labels.items()))

    def total(self, name: str, **labels: str) -> float | None:
        """The sum of the samples that have these labels, and perhaps others; None where there is none."""
        wanted = frozenset(labels.items())
        found = [value for mine, value in self._samples.get(name, {}).items() if wanted <= mine]
        return sum(found) if found else None

    def count(self, name: str) -> int | None:
        """`total` as a whole number."""
        total = self.total(name)
        return None if total is None else round(total)

    def label(self, name: str, label: str) -> str:
        """The label's value in any sample of the metric, printable; "" where there is none."""
        return next(iter(self.by_label(name, label)), "")

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The samples by one label, printable, others summed up."""
        sums: dict[str, float] = {}
        for labels, value in self._samples.get(name, {}).items():
            key = dict(labels).get(label)
            if key is not None:
                key = printable(key, MAX_LABEL)
                sums[key] = sums.get(key, 0.0) + value
        return sums

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """Cumulative counts of a histogram by upper bound; empty where there is none."""
        wanted = frozenset(labels.items())
        counts: dict[float, float] = {}
        for mine, value in self._samples.get(f"{name}_bucket", {}).items():
            bound = _bound(dict(mine).get("le", ""))
            if not math.isnan(bound) and wanted <= mine:
                counts[bound] = counts.get(bound, 0.0) + value
        return dict(sorted(counts.items()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Scrape:
    taken_at_s: float
    """By a monotonic clock."""
    metrics: Metrics


def page_text(body: bytes, name: str) -> str:
    """WatchError for a page that is too large."""
    if len(body) > MAX_PAGE_BYTES:
        raise WatchError(f"{name} is larger than {MAX_PAGE_BYTES >> 20} MiB")
    return body.decode("utf-8", errors="replace")


def parse_metrics(text: str, wanted: Collection[str] = ()) -> Metrics:
    """Reads Prometheus's text format; ValueError for anything else. wanted: samples that are kept; none keeps all.

    The label `rank`, which all samples of one of several learners have, is theirs together.
    """
    samples: dict[str, dict[Labels, float]] = {}
    rank = ""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if math.isfinite(sample.value) and (not wanted or sample.name in wanted):
                labels = dict(sample.labels)
                rank = labels.pop("rank", rank)
                samples.setdefault(sample.name, {})[frozenset(labels.items())] = sample.value
    return Metrics(samples, printable(rank, MAX_LABEL))


def growth(before: Scrape | None, now: Scrape, name: str, **labels: str) -> float | None:
    """Of a counter between two scrapes; None without two of the same life of it."""
    first = None if before is None else before.metrics.total(name, **labels)
    last = now.metrics.total(name, **labels)
    return last - first if first is not None and last is not None and last >= first else None


def rate(before: Scrape | None, now: Scrape, name: str, **labels: str) -> float | None:
    """A counter's growth a second; None as `growth`, and without time between the scrapes."""
    amount = growth(before, now, name, **labels)
    if amount is None or before is None or now.taken_at_s <= before.taken_at_s:
        return None
    return amount / (now.taken_at_s - before.taken_at_s)


def quantiles(before: Mapping[float, float], now: Mapping[float, float], shares: Sequence[float]) -> list[float | None]:
    """Quantiles of what a histogram has observed between two scrapes, linear within a bucket.

    The largest finite bound where a quantile lies above it; None where nothing was observed, or the counts started
    anew. https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile
    """
    counts = [(bound, count - before.get(bound, 0.0)) for bound, count in now.items()]
    num_observed = counts[-1][1] if counts else 0.0
    if num_observed <= 0 or any(count < 0 for _, count in counts):
        return [None for _ in shares]
    return [_quantile(counts, share * num_observed) for share in shares]


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _quantile(counts: Sequence[tuple[float, float]], rank: float) -> float | None:
    lower, below = 0.0, 0.0
    for bound, count in counts:
        if count >= rank:
            if math.isinf(bound):
                return lower if len(counts) > 1 else None
            return lower + (bound - lower) * ((rank - below) / (count - below) if count > below else 1.0)
        lower, below = bound, count
    return lower
