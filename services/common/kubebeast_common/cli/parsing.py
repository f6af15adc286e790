"""Parsing of a command line: settings, --help, and errors in one line."""

import contextlib
import dataclasses
import io
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tyro

from kubebeast_common import log
from kubebeast_common.cli.command import Command
from kubebeast_common.cli.help.text import help_text
from kubebeast_common.cli.sources import LayeredFlags

_HELP = {"-h", "--help", "-H", "--help-verbose"}
"""Flags that request help; the last two are tyro's."""


class StartLog:
    """Messages of a command before its log is open, one line each to standard error; JSON if the log will be JSON."""

    def __init__(self, program: str, log_format: str) -> None:
        """`log_format` is the setting as the user wrote it, "text" for commands that have no log."""
        self._program = program
        formatter = log.make_handler("info", "json" if log_format == "json" else "auto").formatter
        is_json = isinstance(formatter, log.JsonFormatter) and log_format != "text"
        self._formatter = formatter if is_json else None
        self.draws = self._formatter is None and sys.stderr.isatty()
        """True if a message may have several lines."""

    def write(self, text: str, level: int = logging.INFO) -> None:
        line = f"{self._program}: {text}"
        if self._formatter is not None:
            line = log.line(__name__, line, self._formatter.format, level)
        print(line, file=sys.stderr)


def parse(out: StartLog, program: str, config_type: type, layered: LayeredFlags, has_sources: bool) -> Any:
    """Parses the settings of a command into a validated configuration.

    Args:
        has_sources: True for commands with the flags --config and --recipe.

    Raises:
        ConfigError: A value cannot be used.
        SystemExit: A flag is unknown or cannot be parsed; status 2, after a message.
    """
    if not has_sources:
        return _parse(out, program, config_type, layered.flags)
    for note in layered.notes:
        out.write(f"settings of {note}")
    config = _parse(out, program, _with_sources(config_type), layered.flags)
    return dataclasses.replace(config, **layered.hidden)


def is_help_wanted(flags: Sequence[str]) -> bool:
    return not _HELP.isdisjoint(flags)


def explain(out: StartLog, program: str, command: Command, layered: LayeredFlags) -> str:
    """Returns the output of --help, with the defaults after recipe, file and environment. Raises as `parse`."""
    if not command.has_sources:
        return help_text(program, command)
    defaults = _parse(out, program, _with_sources(command.config_type), layered.from_sources)
    return help_text(program, command, notes=[f"Defaults of {note}" for note in layered.notes], defaults=defaults)


def _parse(out: StartLog, program: str, form: Any, flags: Sequence[str]) -> Any:
    refusal = io.StringIO()
    try:
        with contextlib.nullcontext() if out.draws else contextlib.redirect_stderr(refusal):
            return tyro.cli(form, args=flags, prog=program, config=(tyro.conf.OmitArgPrefixes,))
    except SystemExit as end:
        if end.code and not out.draws:
            out.write(_in_one_line(refusal.getvalue()), logging.ERROR)
        raise


def _with_sources(config_type: type) -> Callable[..., Any]:
    """Returns a form, for tyro, of a command's settings and the flags of their sources."""
    start = config_type()

    def settings(settings: Any = start, *, config: Path | None = None, recipe: str = "auto") -> Any:
        return settings

    settings.__annotations__["settings"] = config_type
    return settings


def _in_one_line(box: str) -> str:
    """Joins a box of tyro, in UTF-8 or ASCII, to one line, without its title and its last part, a hint at --help."""
    parts: list[list[str]] = [[]]
    for line in box.splitlines():
        text = line.strip("│╰╯ ")
        if set(text) <= {"─", "-"} or text.startswith("╭"):
            parts.append([text.strip("╭─╮ ")] if text.startswith("╭") else [])
            parts.append([])
        else:
            parts[-1].append(text)
    sentences = [" ".join(" ".join(part).split()) for part in parts]
    return "; ".join([sentence for sentence in sentences if sentence][1:-1]) or box.strip()
