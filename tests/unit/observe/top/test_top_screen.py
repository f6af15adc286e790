"""`kubebeast top` draws its screen and obeys its keys."""

import io
import os
import pty
import re
import sys
import termios
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from harness.ports import free_address
from kubebeast_common.cli import main as cli
from kubebeast_learner.config import ConfigError
from kubebeast_observe.numbers import time_text
from kubebeast_observe.settings import TopConfig, http_url
from kubebeast_observe.top.command import ORDERS, QUIT_KEY, obey
from kubebeast_observe.top.keys import keys
from kubebeast_observe.top.screen import draw
from kubebeast_observe.top.view import View
from tests.unit.observe.top.test_top_view import scrape, task_metrics, view_of
from tests.unit.observe.top.top_learner import metrics, old_metrics, stream

WIDTH = 140


def busy_view(num_servers: int = 3, **gauges: float) -> View:
    names = [f"pod-{i:04}" for i in range(num_servers)]
    now = [
        stream(name, steps=8800, connected_s=101.0, env_s=30.0 if name == "pod-0001" else 20.5, action_s=10.25)
        for name in names
    ]
    before = scrape(metrics(batches=100, **gauges), *(stream(name) for name in names))
    return view_of(before, scrape(metrics(batches=200, **gauges), *now, taken_at_s=1.0))


def lines(view: View, width: int = WIDTH, height: int | None = None, **options: Any) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(draw(view, "env", width, height, **options))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_first_lines_say_what_is_trained_and_who_waits_for_whom() -> None:
    title, progress, *rest = lines(busy_view())
    assert title.startswith("run-1  here  the fleet starves the learner")
    assert progress.startswith("step 1,000 of 5,000") and "500 steps/s" in progress and "return 21.50" in progress
    (waits,) = (line for line in rest if line.startswith("learner waits"))
    assert "50%" in waits


def test_every_number_has_its_place() -> None:
    text = "\n".join(lines(busy_view()))
    assert "3, full at 6" in text and "16 of 64" in text and "12.5%" in text and "61s" in text
    assert "5.50 ms, 9.91 ms" in text and "updates that were not finite: 1" in text


def test_several_tasks_have_a_line_each() -> None:
    before = scrape(metrics() + task_metrics(100, 500))
    view = view_of(before, scrape(metrics() + task_metrics(400, 600), stream(), taken_at_s=2.0))
    drawn = lines(view)
    titles = next(index for index, line in enumerate(drawn) if line.startswith("environment"))
    assert [line.split() for line in drawn[titles + 1 : titles + 3]] == [
        ["Task-v0", "150", "75.0%", "0.00"],
        ["Task-v1", "50", "25.0%", "7.00"],
    ]
    assert len(lines(view, height=24)) <= 24


def test_several_learners_have_a_line_each() -> None:
    look = scrape(metrics(), stream(), ranks=[{}, {"streams": 0, "envs": 0, "sps": 0.0, "empty_shares": 7}])
    drawn = lines(view_of(None, look))
    titles = next(index for index, line in enumerate(drawn) if line.startswith("rank"))
    assert [line.split() for line in drawn[titles + 1 : titles + 3]] == [
        ["0", "2", "16", "250", "3", "0"],
        ["1", "0", "0", "0", "3", "7"],
    ]
    assert len(lines(view_of(None, look), height=24)) <= 24


def test_advice_that_does_not_fit_beside_the_verdict_stands_below() -> None:
    view = busy_view(learner_starved_ratio=0.5, inference_busy_ratio=1.0)
    advice = "more env-servers would only wait: a GPU, a smaller model or larger batches would help"
    wide, narrow = lines(view), lines(view, width=90)
    assert wide[0].endswith(advice) and narrow[1] == advice
    assert len(lines(view, width=90, height=24)) <= 24


def test_a_queue_beyond_its_capacity_is_full_and_no_more() -> None:
    text = "\n".join(lines(busy_view(rollouts_queued=140.0, rollout_queue_capacity=40.0, rollouts_running=32.0)))
    assert "140, full at 8" in text and "1750%" not in text
    (queue,) = (line for line in text.splitlines() if line.startswith("rollout queue"))
    assert " full " in queue


def test_the_slowest_env_server_comes_first() -> None:
    (titles, first, *_) = lines(busy_view())[-4:]
    assert titles.split() == [
        "env-server",
        "streams",
        "envs",
        "steps/s",
        "env",
        "time",
        "wait",
        "parked",
        "phase",
        "age",
    ]
    assert first.split() == ["pod-0001", "1", "8", "800", "100", "ms", "2.50", "ms", "0%", "env", "101s"]


def test_no_more_rows_than_fit_are_drawn() -> None:
    drawn = lines(busy_view(1000), height=24, keys="press something")
    assert len(drawn) == 24
    assert drawn[-1] == "press something" and drawn[-3].startswith("and 99") and drawn[-3].endswith("more")


def test_streams_are_drawn_on_request() -> None:
    drawn = lines(busy_view(1), streams=True)
    assert drawn[-1].startswith("  ipv4:10.0.0.7:41234")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_goes_without_some_columns_and_folds_nothing(width: int) -> None:
    drawn = lines(busy_view(), width=width)
    assert max(map(len, drawn[2:])) <= width
    assert drawn[-3].split()[:1] == ["pod-0001"] and "100 ms" in drawn[-3]


def test_what_an_older_learner_does_not_tell_is_a_dash() -> None:
    view = view_of(None, scrape(old_metrics()))
    text = "\n".join(lines(view))
    assert "None" not in text and "nan" not in text
    assert "return -" in text


def test_names_in_brackets_are_not_markup() -> None:
    gpu = 'kubebeast_gpu_busy_ratio{device="[/x]"} 0.5\n'
    view = view_of(None, scrape(old_metrics() + gpu, stream("[red]name[/]", phase="[b]")))
    view = replace(view, notes=["[blink]"], run_id="[u]run")
    text = "\n".join(lines(view))
    assert all(part in text for part in ("[red]name[/]", "[b]", "[blink]", "[u]run", "[/x]"))


def test_times_have_three_digits_and_a_unit() -> None:
    assert [time_text(s) for s in (None, 0.0, 0.00025, 0.0009996, 0.0125, 0.9996, 12.34, 1234.0)] == [
        "-", "0.00 µs", "250 µs", "1.00 ms", "12.5 ms", "1.00 s", "12.3 s", "1,234 s",
    ]  # fmt: skip


def test_keys_choose_order_and_streams() -> None:
    config = TopConfig()
    assert [obey(key, config).sort for key in ORDERS] == list(ORDERS.values())
    assert obey("x", config).streams and not obey("x", obey("x", config)).streams
    assert obey("z", config) == obey(QUIT_KEY, config) == obey("", config) == config


def test_the_terminal_is_as_before_after_keys_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "wb", buffering=0) as typist, os.fdopen(follower, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        before = termios.tcgetattr(terminal)
        with keys() as next_key:
            assert next_key is not None and termios.tcgetattr(terminal) != before
            typist.write(b"s")
            assert next_key(30.0) == "s"
            assert next_key(0.0) == ""
        assert termios.tcgetattr(terminal) == before


def test_without_a_terminal_no_keys_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("q"))
    with keys() as next_key:
        assert next_key is None


def test_the_command_line_is_understood(started: list[Any]) -> None:
    cli.main(["top"])
    cli.main(["top", "--learner", "http://host:1", "--sort", "wait", "--once", "--json", "--streams"])
    cli.main(["top", "http://host:1", "--sort", "wait", "--once", "--json", "--streams"])
    cli.main(["top", "-n", "train", "--release", "kb"])
    one = TopConfig(learner="http://host:1", sort="wait", once=True, json=True, streams=True)
    assert started == [TopConfig(), one, one, TopConfig(namespace="train", release="kb")]
    assert [config.in_cluster for config in started] == [False, False, False, True]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "http://host:port"}, "learner = 'http://host:port': must be HOST:PORT such as"),
        ({"learner": "host:port"}, "learner = 'host:port': must be HOST:PORT such as"),
        ({"learner": "http://[::1"}, "must be HOST:PORT such as"),
        ({"learner": "ftp://host:9090"}, "must be HOST:PORT such as"),
        ({"learner": ""}, "must be HOST:PORT such as"),
        ({"learner": "http://a", "namespace": "train"}, "learner = 'http://a': is one learner"),
    ],
)
def test_a_learner_that_cannot_be_meant_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        TopConfig(**settings)


@pytest.mark.parametrize(
    ("learner", "url"),
    [
        ("127.0.0.1:9091", "http://127.0.0.1:9091"),
        ("learner", "http://learner:9090"),
        ("learner.train.svc:80", "http://learner.train.svc:80"),
        ("[::1]:9091", "http://[::1]:9091"),
        ("[::1]", "http://[::1]:9090"),
        ("::1", "http://[::1]:9090"),
        ("learner:9090/behind/a/proxy", "http://learner:9090/behind/a/proxy"),
        ("http://learner", "http://learner"),
        ("https://learner:1/x", "https://learner:1/x"),
    ],
)
def test_a_learner_is_named_by_its_address_or_its_url(learner: str, url: str) -> None:
    assert TopConfig(learner=learner).learner == learner
    assert http_url(learner) == url


def test_where_no_learner_answers_it_is_said_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["top", "--learner", free_address(), "--once"]) == 1
    assert "cannot be reached" in (error := capsys.readouterr().err)
    assert "--http-address 127.0.0.1:9090" in error
