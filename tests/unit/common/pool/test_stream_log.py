"""The log reports streams that open and close, and stays short."""

import json
import logging
from dataclasses import dataclass

import pytest

from kubebeast_common.log import JsonFormatter
from kubebeast_common.pool.stream_log import INTERVAL_S, LINES_AT_ONCE, MAX_TEXT, StreamLog
from tests.unit.learner.run.test_run_stats import Clock


@dataclass(frozen=True, kw_only=True)
class Event:
    kind: str
    env_server_id: str = "pod-3"
    instance_id: str = "a1"
    env_id: str = "Pong-v5"
    num_envs: int = 16
    peer: str = "ipv4:10.0.0.3:5555"
    reason: str = ""
    detail: str = ""
    env_config: str = ""


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kubebeast_common")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Event(kind="joined"), "pod-3 joined from ipv4:10.0.0.3:5555: 16 of Pong-v5"),
        (Event(kind="left", reason="bye", detail="node drained"), "pod-3 left with 16 environments: bye: node drained"),
        (Event(kind="left", reason="disconnect"), "pod-3 left with 16 environments: disconnect"),
    ],
)
def test_coming_and_going_is_told_with_the_reason(event: Event, line: str, caplog: pytest.LogCaptureFixture) -> None:
    StreamLog().tell([event])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("INFO", line)]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event(kind="refused", env_server_id="", reason="UNAUTHENTICATED", detail="the bearer token is missing"),
            "an env-server at ipv4:10.0.0.3:5555 refused: UNAUTHENTICATED: the bearer token is missing",
        ),
        (
            Event(kind="dial_failed", peer="a:1", reason="UNAVAILABLE", detail="connection refused"),
            "dialing a:1 failed: UNAVAILABLE: connection refused",
        ),
        (
            Event(kind="connection_refused", env_server_id="", reason="plaintext", detail="it came without TLS"),
            "a connection from ipv4:10.0.0.3:5555 ended without a stream: plaintext: it came without TLS",
        ),
        (
            Event(
                kind="accept_failed", env_server_id="", peer="", reason="RESOURCE_EXHAUSTED", detail="too many files"
            ),
            "no connection can be accepted, trying again: RESOURCE_EXHAUSTED: too many files",
        ),
        (Event(kind="left", reason="timeout"), "pod-3 left with 16 environments: timeout"),
        (Event(kind="left", reason="invalid"), "pod-3 left with 16 environments: invalid"),
    ],
)
def test_trouble_is_a_warning(event: Event, line: str, caplog: pytest.LogCaptureFixture) -> None:
    StreamLog().tell([event])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", line)]


def test_a_line_about_a_stream_names_it_in_json(caplog: pytest.LogCaptureFixture) -> None:
    StreamLog().tell(
        [Event(kind="joined", instance_id="a1\n"), Event(kind="refused", env_server_id="", instance_id="")]
    )
    joined, refused = (json.loads(JsonFormatter().format(record)) for record in caplog.records)
    assert (joined["env_server_id"], joined["instance_id"]) == ("pod-3", "a1 ")
    assert not {"env_server_id", "instance_id"} & refused.keys()


def test_what_many_do_at_once_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = StreamLog(clock)
    for _ in range(5):
        log.tell([Event(kind="joined")] * 100)
    log.tell([Event(kind="left", reason="disconnect")] * 12 + [Event(kind="refused", reason="UNAVAILABLE")] * 3)
    assert len(caplog.records) == LINES_AT_ONCE
    clock.now = INTERVAL_S
    log.tell([Event(kind="left", reason="bye")])
    summary, line = caplog.messages[LINES_AT_ONCE:]
    assert summary == "and 480 more joined, 12 more left (disconnect), 3 more refused (UNAVAILABLE)"
    assert line == "pod-3 left with 16 environments: bye"


def test_a_flood_that_never_ends_does_not_fill_the_disk(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = StreamLog(clock)
    num_intervals = 6
    for _ in range(round(num_intervals * INTERVAL_S * 2)):
        log.tell([Event(kind="refused", reason="UNAUTHENTICATED")] * 4096)
        clock.now += 0.5
    assert len(caplog.records) <= num_intervals * (LINES_AT_ONCE + 1)


def test_the_rest_is_told_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    log = StreamLog()
    log.tell([Event(kind="joined")] * (LINES_AT_ONCE + 2))
    log.flush()
    log.flush()
    assert caplog.messages[LINES_AT_ONCE:] == ["and 2 more joined"]


def test_a_peer_cannot_forge_lines_nor_fill_them(caplog: pytest.LogCaptureFixture) -> None:
    hostile = "\n2026-01-01 INFO saved checkpoint\x1b[2J" + "x" * 10_000
    StreamLog().tell([Event(kind="joined", env_server_id=hostile, env_id=hostile, peer=hostile, detail=hostile)])
    (message,) = caplog.messages
    assert message.isprintable()
    assert len(message) <= 4 * MAX_TEXT + 100
