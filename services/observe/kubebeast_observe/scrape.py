"""Metrics pages, read by name, and the changes between two of them.

A value that a peer does not export, for example an older one, is None.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from kubebeast_common.spec.limits import MAX_ID_CHARACTERS
from kubebeast_common.text import printable
from kubebeast_observe.errors import WatchError

MAX_PAGE_BYTES = 8 << 20
"""Maximum size of a page; larger ones are refused. Ten thousand streams need a third of it."""

Labels = frozenset[tuple[str, str]]


class Metrics:
    """Finite samples by name and labels."""

    def __init__(self, samples: Mapping[str, Mapping[Labels, float]], rank: str = "") -> None:
        """rank: the rank of the learner that exports them, "" if it is alone."""
        self.rank = rank
        self._samples = samples

    def __contains__(self, name: object) -> bool:
        return name in self._samples

    def value(self, name: str, **labels: str) -> float | None:
        """Returns the sample with exactly these labels."""
        return self._samples.get(name, {}).get(frozenset(labels.items()))

    def total(self, name: str, **labels: str) -> float | None:
        """Returns the sum of the samples with at least these labels; None if there is none."""
        wanted = frozenset(labels.items())
        found = [value for mine, value in self._samples.get(name, {}).items() if wanted <= mine]
        return sum(found) if found else None

    def count(self, name: str) -> int | None:
        """Returns `total` as a whole number."""
        total = self.total(name)
        return None if total is None else round(total)

    def label(self, name: str, label: str) -> str:
        """Returns the label's value in any sample of the metric, printable; "" if there is none."""
        return next(iter(self.by_label(name, label)), "")

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Returns the samples by the printable value of one label, summed over the other labels."""
        sums: dict[str, float] = {}
        for labels, value in self._samples.get(name, {}).items():
            key = dict(labels).get(label)
            if key is not None:
                key = printable(key, MAX_ID_CHARACTERS)
                sums[key] = sums.get(key, 0.0) + value
        return sums

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """Returns the cumulative counts of a histogram by upper bound; empty if there is none."""
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
    """Time of a monotonic clock."""
    metrics: Metrics


def page_text(body: bytes, name: str) -> str:
    """Decodes a page. Raises WatchError if it is too large."""
    if len(body) > MAX_PAGE_BYTES:
        raise WatchError(f"{name} is larger than {MAX_PAGE_BYTES >> 20} MiB")
    return body.decode("utf-8", errors="replace")


def parse_metrics(text: str, wanted: Collection[str] = ()) -> Metrics:
    """Parses Prometheus's text format. Raises ValueError for anything else.

    The label `rank`, which every sample of one of several learners has, is moved to `Metrics.rank`.

    Args:
        text: The page.
        wanted: Names of the samples to keep; empty keeps all.
    """
    samples: dict[str, dict[Labels, float]] = {}
    rank = ""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if math.isfinite(sample.value) and (not wanted or sample.name in wanted):
                labels = dict(sample.labels)
                rank = labels.pop("rank", rank)
                samples.setdefault(sample.name, {})[frozenset(labels.items())] = sample.value
    return Metrics(samples, printable(rank, MAX_ID_CHARACTERS))


def growth(before: Scrape | None, now: Scrape, name: str, **labels: str) -> float | None:
    """Returns the growth of a counter between two scrapes; None if it is missing in one or was reset between them."""
    first = None if before is None else before.metrics.total(name, **labels)
    last = now.metrics.total(name, **labels)
    return last - first if first is not None and last is not None and last >= first else None


def rate(before: Scrape | None, now: Scrape, name: str, **labels: str) -> float | None:
    """Returns a counter's growth per second; None as for `growth`, and if no time passed between the scrapes."""
    amount = growth(before, now, name, **labels)
    if amount is None or before is None or now.taken_at_s <= before.taken_at_s:
        return None
    return amount / (now.taken_at_s - before.taken_at_s)


def quantiles(before: Mapping[float, float], now: Mapping[float, float], shares: Sequence[float]) -> list[float | None]:
    """Returns quantiles of the observations of a histogram between two scrapes, linear within a bucket.

    A quantile above the largest finite bound is that bound. All are None if nothing was observed or the counts were
    reset. https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile
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
