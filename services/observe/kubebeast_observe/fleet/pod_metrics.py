"""Concurrent scrapes of many pods' metrics, with counters turned into rates."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from kubebeast_observe.errors import RefusedError, WatchError
from kubebeast_observe.fleet.state import PodState, Reading
from kubebeast_observe.scrape import Scrape, parse_metrics, rate

MAX_SCRAPES = 16
"""Maximum number of concurrent scrapes."""
ROUND_TIMEOUT_S = 5.0
"""Maximum duration of a round of scrapes; pods that have not answered by then are unknown."""

_PLAYED, _SAMPLED = "kubebeast_envserver_env_steps_total", "kubebeast_steps_total"
_CONNECTED, _STREAMS = "kubebeast_envserver_streams_connected", "kubebeast_streams"
_STEP, _TOTAL_STEPS = "kubebeast_learner_step", "kubebeast_learner_total_steps"
_FREE_BYTES = "kubebeast_run_free_bytes"
WANTED = frozenset({_PLAYED, _SAMPLED, _CONNECTED, _STREAMS, _STEP, _TOTAL_STEPS, _FREE_BYTES})
"""Metrics kept of a page, since there may be thousands of pages."""

Endpoint = tuple[str, int | None]
"""A pod's uid, and the port of its metrics."""


class Scraper:
    """The last two rounds of scrapes. Not thread-safe."""

    def __init__(self, fetch: Callable[[str, int], str], clock: Callable[[], float] = time.monotonic) -> None:
        """Creates the scrape threads.

        Args:
            fetch: Returns the text of a pod's /metrics by name and port; called from several threads, raises
                WatchError.
            clock: Returns seconds.
        """
        self._fetch = fetch
        self._clock = clock
        self._threads = ThreadPoolExecutor(MAX_SCRAPES, thread_name_prefix="scrape")
        self._before: Mapping[Endpoint, Scrape] = {}
        self._now: Mapping[Endpoint, Scrape] = {}
        self._refusal: RefusedError | None = None
        self._problems: dict[str, str] = {}

    def scrape(self, pods: Sequence[PodState]) -> None:
        """Scrapes all pods that serve metrics. Blocks for at most ROUND_TIMEOUT_S."""
        self._refusal, self._problems = None, {}
        # Pods that are not ready may not answer: they are last, so that they do not occupy the threads.
        asked = sorted((pod for pod in pods if pod.metrics_port is not None), key=lambda pod: not pod.is_ready)
        futures = {self._threads.submit(self._take, pod): pod for pod in asked}
        done, late = wait(futures, ROUND_TIMEOUT_S)
        for future in late:
            future.cancel()
        self._problems |= {futures[future].name: "no answer in time" for future in late}
        self._problems |= {futures[f].name: str(f.exception()) for f in done if isinstance(f.exception(), WatchError)}
        self._before = self._now
        self._now = {_endpoint(futures[future]): future.result() for future in done if future.exception() is None}

    def has_seen(self, pod: PodState) -> bool:
        """Returns True if the pod answered in the last round."""
        return _endpoint(pod) in self._now

    def reading(self, pod: PodState) -> Reading:
        """Returns the pod's values of the last round; its rate is over the time since the round before."""
        return make_reading(self._before.get(_endpoint(pod)), self._now.get(_endpoint(pod)))

    def notes(self) -> list[str]:
        """Returns the reasons why the last round is incomplete, one line each."""
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
            return Scrape(taken_at_s=taken_at_s, metrics=parse_metrics(text, WANTED))
        except ValueError as error:
            raise WatchError(f"/metrics is not in Prometheus's text format: {error}") from error


def make_reading(before: Scrape | None, now: Scrape | None) -> Reading:
    """Returns the values of a pod. now: None if it did not answer."""
    if now is None:
        return Reading()
    metrics = now.metrics
    streams, speed = metrics.count(_STREAMS), rate(before, now, _SAMPLED, outcome="sampled")
    if _CONNECTED in metrics:
        streams, speed = metrics.count(_CONNECTED), rate(before, now, _PLAYED)
    return Reading(
        streams=streams,
        steps_per_second=speed,
        step=metrics.count(_STEP),
        total_steps=metrics.count(_TOTAL_STEPS),
        free_bytes=metrics.count(_FREE_BYTES),
        rank=metrics.rank,
    )


def _endpoint(pod: PodState) -> Endpoint:
    return pod.uid, pod.metrics_port
