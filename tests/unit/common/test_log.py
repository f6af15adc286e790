"""Log lines are JSON for programs and text for people."""

import io
import json
import logging
import sys
from typing import Any

import pytest

from kubebeast_common import log
from kubebeast_common.log import JsonFormatter, LogFormat, TextFormatter, line, make_handler


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_noted", {})
    monkeypatch.delenv("NO_COLOR", raising=False)


def written(level: int, text: str, **values: object) -> dict[str, Any]:
    record = logging.LogRecord("name", level, "", 0, text, None, None)
    record.__dict__.update(log.fields(**values))
    entry: dict[str, Any] = json.loads(JsonFormatter().format(record))
    return entry


def test_a_json_line_has_time_level_logger_process_and_message() -> None:
    record = logging.LogRecord("kubebeast", logging.WARNING, "", 0, "%d of %d", (1, 2), None)
    record.created, record.msecs = 1_767_225_599.25, 250.0
    assert json.loads(JsonFormatter().format(record)) == {
        "time": "2025-12-31T23:59:59.250Z",
        "level": "warning",
        "logger": "kubebeast",
        "process": "MainProcess",
        "message": "1 of 2",
    }


def test_what_is_noted_is_in_every_later_line_until_it_is_taken_away() -> None:
    log.note(run_id="catch", instance_id="a-0")
    assert (written(logging.INFO, "one")["run_id"], written(logging.INFO, "two")["instance_id"]) == ("catch", "a-0")
    log.note(run_id="")
    assert "run_id" not in written(logging.INFO, "three")


def test_fields_of_a_line_come_before_those_of_the_process() -> None:
    log.note(run_id="catch", instance_id="a-0")
    entry = written(logging.INFO, "left", instance_id="b-1", run_id="", step=7)
    assert (entry["instance_id"], entry["step"], "run_id" in entry) == ("b-1", 7, False)


def test_whatever_a_text_holds_it_is_one_line_of_ascii() -> None:
    log.note(env_server_id="\ud800 ü\n{}")
    text = line("name", 'said "\u2028\r\n"', JsonFormatter().format)
    assert text.isascii() and text.isprintable()
    assert json.loads(text)["message"] == 'said "\u2028\r\n"'


def test_trouble_is_coloured_where_there_are_colours() -> None:
    trouble = logging.LogRecord("name", logging.ERROR, "", 0, "lost", None, None)
    assert TextFormatter(True).format(trouble).startswith("\x1b[31m")
    assert "\x1b" not in TextFormatter(False).format(trouble)
    assert "\x1b" not in line("name", "fine", TextFormatter(True).format)


@pytest.mark.parametrize(
    ("log_format", "stream", "is_json"),
    [("auto", io.StringIO, True), ("auto", Terminal, False), ("json", Terminal, True), ("text", io.StringIO, False)],
)
def test_auto_is_text_on_a_terminal_and_json_elsewhere(
    log_format: LogFormat, stream: type[io.StringIO], is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream())
    assert isinstance(make_handler("info", log_format).formatter, JsonFormatter) == is_json


@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_no_color_is_heeded(no_color: str, is_coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    make_handler("info", "auto").handle(logging.LogRecord("name", logging.ERROR, "", 0, "lost", None, None))
    assert ("\x1b[31m" in terminal.getvalue()) == is_coloured


def test_what_is_below_the_level_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.Logger("own")
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    logger.addHandler(make_handler("warning", "json"))
    logger.info("unimportant")
    logger.warning("important")
    assert [json.loads(text)["message"] for text in stream.getvalue().splitlines()] == ["important"]


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter(coloured=False)], ids=["json", "text"])
def test_of_a_traceback_that_is_too_long_the_middle_is_left_out(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"begins {'x' * 1_000_000} ends")
    except ValueError:
        record = logging.LogRecord("name", logging.WARNING, "", 0, "it failed", None, sys.exc_info())
    text = formatter.format(record)
    assert len(text) < 50_000 and "Traceback" in text and "begins" in text and "ends" in text
