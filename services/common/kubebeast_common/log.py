"""Logging of env-server and learner: one line per event, as text on a terminal and as JSON elsewhere."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]

_COLOURS = {"DEBUG": 2, "WARNING": 33, "ERROR": 31, "CRITICAL": 31}
"""SGR parameters of ECMA-48 by level: faint, yellow and red."""

_MAX_TRACEBACK = 20_000
"""Maximum number of characters of a traceback."""

_noted: dict[str, str] = {}


def note(**values: str) -> None:
    """Adds fields to all later JSON lines of this process; an empty value removes a field."""
    _noted.update(values)


def fields(**values: object) -> Mapping[str, object]:
    """Returns `extra` of a logging call: JSON fields of this line only; an empty value removes a field."""
    return {"fields": values}


def line(
    name: str, message: str, write: Callable[[logging.LogRecord], str], level: int = logging.INFO, /, **values: object
) -> str:
    """Returns the line that the logger `name` would write at `level`, for output that bypasses logging.

    write is the `format` of a handler or formatter. values are fields of the line.
    """
    record = {"name": name, "levelno": level, "levelname": logging.getLevelName(level), "msg": message}
    return write(logging.makeLogRecord({**record, **fields(**values)}))


class _Formatter(logging.Formatter):
    """A formatter that omits the middle of a traceback that is too long, e.g. because of long error messages."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        text = super().formatException(ei)
        left_out = len(text) - _MAX_TRACEBACK
        half = _MAX_TRACEBACK // 2
        return text if left_out <= 0 else f"{text[:half]}\n... {left_out} characters ...\n{text[-half:]}"


class JsonFormatter(_Formatter):
    """A formatter of JSON lines: time (RFC 3339, UTC), level, logger, process, message, fields, traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.processName,
            "message": record.getMessage(),
        }
        extra: Mapping[str, object] = getattr(record, "fields", {})
        entry |= {name: value for name, value in {**_noted, **extra}.items() if value != ""}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class TextFormatter(_Formatter):
    """A formatter of time, level, process and message, with colors by level if `coloured`."""

    def __init__(self, coloured: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(processName)s %(message)s")
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        colour = _COLOURS.get(record.levelname)
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and colour is not None else text


def make_handler(level: LogLevel, log_format: LogFormat) -> "logging.StreamHandler[TextIO]":
    """Returns a handler that writes records of at least `level` to standard error.

    log_format "auto" means text on a terminal and JSON elsewhere. Text on a terminal is colored unless NO_COLOR is set
    (https://no-color.org).
    """
    handler = logging.StreamHandler(sys.stderr)
    is_terminal = sys.stderr.isatty()
    if log_format == "json" or (log_format == "auto" and not is_terminal):
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(TextFormatter(is_terminal and not os.environ.get("NO_COLOR")))
    handler.setLevel(level.upper())
    return handler


def configure(level: LogLevel, log_format: LogFormat = "auto") -> logging.Handler:
    """Sends the log of this process and the messages of `warnings` to standard error. Returns the handler."""
    handler = make_handler(level, log_format)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    return handler
