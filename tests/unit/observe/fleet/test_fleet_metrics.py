"""Pods are scraped, and rates are computed between scrapes."""

import threading
from collections.abc import Callable

import pytest
from prometheus_client import generate_latest

from kubebeast_envserver.metrics import make_registry
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_observe.errors import RefusedError, UnavailableError
from kubebeast_observe.fleet import pod_metrics
from kubebeast_observe.fleet.pod_metrics import MAX_SCRAPES, WANTED, Scraper, make_reading
from kubebeast_observe.fleet.state import Reading
from kubebeast_observe.scrape import Scrape, parse_metrics
from tests.unit.observe.fleet.fleet_objects import env_server_metrics, pod_state


def page(taken_at_s: float, text: str) -> Scrape:
    return Scrape(taken_at_s=taken_at_s, metrics=parse_metrics(text, WANTED))


def test_the_metrics_of_an_env_server_are_known() -> None:
    status = StreamStatus()
    status.env_steps, status.connected = 42, True
    first = generate_latest(make_registry([status], lambda: 0)).decode()
    status.env_steps += 8
    second = generate_latest(make_registry([status], lambda: 0)).decode()
    assert make_reading(page(1.0, first), page(3.0, second)) == Reading(streams=1, steps_per_second=4.0)


def test_of_a_learners_steps_the_sampled_ones_count() -> None:
    text = (
        "# TYPE kubebeast_steps counter\n"
        'kubebeast_steps_total{outcome="sampled"} 90\nkubebeast_steps_total{outcome="delivered"} 80\n'
        "# TYPE kubebeast_learner_step gauge\nkubebeast_learner_step 1000\n"
        "# TYPE kubebeast_learner_total_steps gauge\nkubebeast_learner_total_steps 5e6\n"
        "# TYPE kubebeast_streams gauge\nkubebeast_streams 3\n"
        "# TYPE kubebeast_run_free_bytes gauge\nkubebeast_run_free_bytes 7e9\n"
    )
    before = '# TYPE kubebeast_steps counter\nkubebeast_steps_total{outcome="sampled"} 40\n'
    expected = Reading(streams=3, steps_per_second=25.0, step=1000, total_steps=5_000_000, free_bytes=7 * 10**9)
    assert make_reading(page(10.0, before), page(12.0, text)) == expected


@pytest.mark.parametrize(
    ("before", "now", "rate"),
    [
        (page(1.0, env_server_metrics(100)), page(3.0, env_server_metrics(150)), 25.0),
        (page(1.0, env_server_metrics(100)), page(3.0, env_server_metrics(100)), 0.0),
        (page(1.0, env_server_metrics(100)), page(3.0, env_server_metrics(50)), None),
        (page(1.0, env_server_metrics(100)), page(1.0, env_server_metrics(150)), None),
        (page(1.0, ""), page(3.0, env_server_metrics(150)), None),
        (None, page(3.0, env_server_metrics(150)), None),
        (page(1.0, env_server_metrics(100)), None, None),
    ],
    ids=["growing", "idle", "reset", "no time between", "no counter", "first scrape", "silent"],
)
def test_a_rate_needs_two_scrapes_of_one_counter(before: Scrape | None, now: Scrape | None, rate: float | None) -> None:
    assert make_reading(before, now).steps_per_second == rate


def scripted_clock(times_s: list[float]) -> Callable[[], float]:
    remaining = iter(times_s)
    return lambda: next(remaining)


def test_two_rounds_give_the_rate_by_the_clock_of_each_scrape() -> None:
    texts = iter([env_server_metrics(100), env_server_metrics(400)])
    scraper = Scraper(lambda name, port: next(texts), scripted_clock([10.0, 11.5]))
    pod = pod_state()
    scraper.scrape([pod])
    assert scraper.reading(pod) == Reading(streams=2)
    scraper.scrape([pod])
    assert scraper.reading(pod) == Reading(streams=2, steps_per_second=200.0)


def test_a_silent_pod_takes_nothing_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_metrics, "ROUND_TIMEOUT_S", 1.0)
    released = threading.Event()

    def fetch(name: str, port: int) -> str:
        if name == "silent":
            released.wait(60)
        return env_server_metrics(1)

    scraper = Scraper(fetch)
    silent, answering = pod_state("silent"), pod_state("answering")
    try:
        scraper.scrape([silent, answering])
        assert scraper.reading(silent) == Reading()
        assert scraper.reading(answering) == Reading(streams=2)
        assert scraper.notes() == ["pods whose metrics could not be read: 1; silent: no answer in time"]
    finally:
        released.set()


def test_pods_that_are_not_ready_are_asked_last() -> None:
    asked: list[str] = []
    threads_free = threading.Barrier(MAX_SCRAPES)

    def fetch(name: str, port: int) -> str:
        asked.append(name)
        if name.startswith("ready"):
            threads_free.wait(60)
        return env_server_metrics(1)

    ready = [pod_state(f"ready-{i}") for i in range(MAX_SCRAPES)]
    Scraper(fetch).scrape([pod_state("late", is_ready=False), *ready])
    assert asked[-1] == "late"


def test_learners_of_one_pod_are_read_each() -> None:
    def fetch(name: str, port: int) -> str:
        return f'kubebeast_streams{{rank="{port - 9090}"}} {port}.0\n'

    scraper, pods = Scraper(fetch), list(pod_state(metrics_port=9090, further_metrics_ports=(9091,)).learners())
    scraper.scrape(pods)
    assert [scraper.reading(pod) for pod in pods] == [
        Reading(streams=9090, rank="0"),
        Reading(streams=9091, rank="1"),
    ]


def test_a_pod_without_a_metrics_port_is_not_asked() -> None:
    def fetch(name: str, port: int) -> str:
        raise UnavailableError("was asked")

    pod = pod_state(metrics_port=None)
    scraper = Scraper(fetch)
    scraper.scrape([pod])
    assert scraper.reading(pod) == Reading() and scraper.notes() == []


def test_a_refusal_ends_the_round_and_is_said_once() -> None:
    asked: list[str] = []

    def refuse(name: str, port: int) -> str:
        asked.append(name)
        raise RefusedError("pods/proxy is forbidden", "ns")

    scraper = Scraper(refuse)
    scraper.scrape([pod_state(f"pod-{i}") for i in range(1000)])
    assert len(asked) <= MAX_SCRAPES
    assert scraper.notes() == ["streams and steps/s are unknown: pods/proxy is forbidden"]


def test_a_pod_that_serves_something_else_is_named() -> None:
    scraper = Scraper(lambda name, port: "<html>")
    scraper.scrape([pod_state("odd")])
    (note,) = scraper.notes()
    assert "odd: /metrics is not in Prometheus's text format" in note


def test_problems_are_those_of_the_last_round() -> None:
    answers: list[str | Exception] = [UnavailableError("connection refused"), env_server_metrics(1)]

    def fetch(name: str, port: int) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    scraper = Scraper(fetch)
    scraper.scrape([pod_state("p")])
    assert scraper.notes() == ["pods whose metrics could not be read: 1; p: connection refused"]
    scraper.scrape([pod_state("p")])
    assert scraper.notes() == [] and scraper.has_seen(pod_state("p"))
