"""The settings of one command line: parsed, explained by --help, and refused in one line."""

import contextlib
import io
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from kubebeast_common import log
from kubebeast_learner.config.sources import LayeredFlags


class Voice:
    """What a command says before there is a log, a line at a time to standard error: JSON where its log will be."""

    def __init__(self, program: str, log_format: str) -> None:
        """log_format: the setting, as the user wrote it; "text" for commands that have no log."""
        self._program = program
        formatter = log.make_handler("info", "json" if log_format == "json" else "auto").formatter
        is_json = isinstance(formatter, log.JsonFormatter) and log_format != "text"
        self._formatter = formatter if is_json else None
        self.draws = self._formatter is None and sys.stderr.isatty()
        """Whether a message may have several lines."""

    def say(self, text: str, level: int = logging.INFO) -> None:
        line = f"{self._program}: {text}"
        if self._formatter is not None:
            line = log.line(__name__, line, self._formatter.format, level)
        print(line, file=sys.stderr)


def parse(voice: Voice, program: str, summary: str, config_type: type, layered: LayeredFlags, has_sources: bool) -> Any:
    """The validated configuration of a command. ConfigError for a value that cannot be used.

    has_sources: with the flags --config and --recipe, and a --help that shows the defaults that the sources leave.
    SystemExit(2) after a message for a flag that is unknown or cannot be read, SystemExit(0) after --help.
    """
    if not has_sources:
        return _parse(voice, program, summary, config_type, layered.flags)
    if {"-h", "--help"} & set(layered.from_user):
        defaults = _parse(voice, program, summary, _with_sources(config_type), layered.from_sources)
        notes = "".join(f"\n\nDefaults of {note}" for note in layered.notes)
        return _parse(voice, program, summary + notes, _with_sources(config_type, defaults), ["--help"])
    for note in layered.notes:
        voice.say(f"settings of {note}")
    return _parse(voice, program, summary, _with_sources(config_type), layered.flags)


def _parse(voice: Voice, program: str, summary: str, form: Any, flags: Sequence[str]) -> Any:
    refusal = io.StringIO()
    try:
        with contextlib.nullcontext() if voice.draws else contextlib.redirect_stderr(refusal):
            return tyro.cli(form, args=flags, prog=program, description=summary, config=(tyro.conf.OmitArgPrefixes,))
    except SystemExit as end:
        if end.code and not voice.draws:
            voice.say(_in_one_line(refusal.getvalue()), logging.ERROR)
        raise


def _with_sources(config_type: type, defaults: Any = None) -> Callable[..., Any]:
    """A command's settings and the flags that say where settings come from. defaults: of the settings."""
    config_flag = tyro.conf.arg(
        metavar="FILE", help="YAML file of settings, name: value. KUBEBEAST_<NAME> variables and flags override it."
    )
    recipe_flag = tyro.conf.arg(
        metavar="NAME",
        help="Settings known to learn, as defaults: auto goes by --env, where there is one; none, or a recipe's name.",
    )

    start = config_type() if defaults is None else defaults

    def settings(
        settings: Any = start,
        *,
        config: Annotated[Path | None, config_flag] = None,
        recipe: Annotated[str, recipe_flag] = "auto",
    ) -> Any:
        return settings

    settings.__annotations__["settings"] = config_type
    return settings


def _in_one_line(box: str) -> str:
    """What tyro has drawn, in UTF-8 or in ASCII: without its title and its last part, which says how to get help."""
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
