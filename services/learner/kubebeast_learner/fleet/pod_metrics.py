"""Reads the metrics of many pods at a time and turns counters into rates."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from kubebeast_learner.fleet.errors import FleetError, RefusedError
from kubebeast_learner.fleet.state import PodState, Reading

MAX_SCRAPES = 16
"""Under way at a time."""
ROUND_TIMEOUT_S = 5.0
"""Longest that a round of scrapes takes; who has not answered by then is not known."""

_STEPS = ("kubebeast_envserver_env_steps_total", "kubebeast_steps_total")
_STREAMS = ("kubebeast_envserver_streams_connected", "kubebeast_streams")
_STEP = ("kubebeast_learner_step",)
_TOTAL_STEPS = ("kubebeast_learner_total_steps",)
_WANTED = {*_STEPS, *_STREAMS, *_STEP, *_TOTAL_STEPS}


@dataclass(frozen=True, slots=True)
class Scrape:
    taken_at_s: float
    """By the clock of the scraper."""
    values: Mapping[str, float]


class Scraper:
    """Remembers the last two rounds. One thread calls it."""

    def __init__(self, fetch: Callable[[str, int], str], clock: Callable[[], float] = time.monotonic) -> None:
        """fetch: the text of a pod's /metrics by name and port, from several threads; raises FleetError.

        clock: seconds.
        """
        self._fetch = fetch
        self._clock = clock
        self._threads = ThreadPoolExecutor(MAX_SCRAPES, thread_name_prefix="scrape")
        self._before: Mapping[str, Scrape] = {}
        self._now: Mapping[str, Scrape] = {}
        self._refusal: RefusedError | None = None
        self._problems: dict[str, str] = {}

    def scrape(self, pods: Sequence[PodState]) -> None:
        """One round over the pods that serve metrics. Blocks for at most ROUND_TIMEOUT_S."""
        self._refusal, self._problems = None, {}
        # Who is not ready may not answer: it must not keep the threads from those who will.
        asked = sorted((pod for pod in pods if pod.metrics_port is not None), key=lambda pod: not pod.is_ready)
        futures = {self._threads.submit(self._take, pod): pod for pod in asked}
        done, late = wait(futures, ROUND_TIMEOUT_S)
        for future in late:
            future.cancel()
        self._problems |= {futures[future].name: "no answer in time" for future in late}
        self._problems |= {futures[f].name: str(f.exception()) for f in done if isinstance(f.exception(), FleetError)}
        self._before = self._now
        self._now = {futures[future].uid: future.result() for future in done if future.exception() is None}

    def has_seen(self, pod: PodState) -> bool:
        """Whether it answered in the last round."""
        return pod.uid in self._now

    def reading(self, pod: PodState) -> Reading:
        """What the last round says of the pod; its rate is over the time since the round before."""
        return make_reading(self._before.get(pod.uid), self._now.get(pod.uid))

    def notes(self) -> list[str]:
        """Why the last round is incomplete, one line a reason."""
        if self._refusal is not None:
            return [f"streams and steps/s are unknown: {self._refusal}"]
        if not self._problems:
            return []
        name, reason = min(self._problems.items())
        return [f"pods whose metrics could not be read: {len(self._problems)}; {name}: {reason}"]

    def _take(self, pod: PodState) -> Scrape:
        if self._refusal is not None:
            raise self._refusal
        assert pod.metrics_port is not None
        try:
            text = self._fetch(pod.name, pod.metrics_port)
        except RefusedError as error:
            self._refusal = error
            raise
        taken_at_s = self._clock()
        try:
            return Scrape(taken_at_s, parse(text))
        except ValueError as error:
            raise FleetError(f"/metrics is not in Prometheus's text format: {error}") from error


def parse(text: str) -> dict[str, float]:
    """The samples that the table shows, by name. ValueError when the text is something else."""
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in _WANTED and sample.labels in ({}, {"outcome": "sampled"})
    }


def make_reading(before: Scrape | None, now: Scrape | None) -> Reading:
    """now is None for a pod that did not answer."""
    if now is None:
        return Reading()
    streams, step, total_steps = (_first(now.values, names) for names in (_STREAMS, _STEP, _TOTAL_STEPS))
    return Reading(
        streams=None if streams is None else int(streams),
        steps_per_second=_rate(before, now),
        step=None if step is None else int(step),
        total_steps=None if total_steps is None else int(total_steps),
    )


def _rate(before: Scrape | None, now: Scrape) -> float | None:
    """Env-steps a second; None without two scrapes of the same life of the counter."""
    if before is None:
        return None
    first, last, elapsed_s = (
        _first(before.values, _STEPS),
        _first(now.values, _STEPS),
        now.taken_at_s - before.taken_at_s,
    )
    if first is None or last is None or last < first or elapsed_s <= 0:
        return None
    return (last - first) / elapsed_s


def _first(values: Mapping[str, float], names: Sequence[str]) -> float | None:
    return next((values[name] for name in names if name in values), None)
