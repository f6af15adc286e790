"""Output of `kubebeast COMMAND --help`: usage, every setting in groups with its default, and examples."""

import dataclasses
import json
import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubebeast_common.cli.command import Command
from kubebeast_common.cli.help.documentation import Setting, settings_of

MOST_COLUMNS = 100
_COLUMN = 30
"""Column of the descriptions."""
TITLES = {
    "": "Options",
    "fleet": "Environments",
    "actors": "Environments",
    "run": "Run",
    "rollout": "Training batch",
    "tasks": "Several tasks",
    "model": "Model",
    "loss": "Loss",
    "optimizer": "Optimizer",
    "replay": "Replay",
    "pool": "Connections and inference",
    "ranks": "Several learners",
    "tuning": "Measurement",
}
"""Titles of the sections, in display order; other sections follow."""
SOURCES = (
    (
        "--recipe NAME",
        "Settings that are known to learn, as defaults: auto (atari, or the recipe for the kind of the environment), "
        "kind, torchbeast (the plain defaults), or another recipe's name.",
    ),
    ("--config FILE", "YAML file of settings, name: value. KUBEBEAST_<NAME> variables and flags override it."),
)
HELP = ("-h, --help", "Show this text.")


def help_text(program: str, command: Command, *, notes: Iterable[str] = (), defaults: Any = None) -> str:
    """Returns the output of --help.

    Args:
        notes: Paragraphs after the summary.
        defaults: A configuration with the defaults; None uses those of the type.
    """
    settings = list(settings_of(command.config_type, instance=defaults))
    positional = [setting for setting in settings if setting.is_positional]
    words = [program, *(setting.placeholder for setting in positional), "[options]"]
    parts = [f"usage: {' '.join(words)}", *(_wrapped(text) for text in (command.summary, *notes))]
    if positional:
        parts.append(_group("Arguments", [(setting.placeholder, _explained(setting)) for setting in positional]))
    for title, group in _groups([setting for setting in settings if not setting.is_positional]):
        entries = [(_invocation(setting), _explained(setting)) for setting in group]
        parts.append(_group(title, entries))
    parts.append(_group("Sources of settings", [*SOURCES, HELP]) if command.has_sources else _group("Help", [HELP]))
    parts.append("\n".join(["Examples:", *(f"  {program} {example}" for example in command.examples)]))
    return "\n\n".join(parts)


def _groups(settings: Sequence[Setting]) -> Iterator[tuple[str, list[Setting]]]:
    """Yields titles and their settings: the group with the environment first, and in it the environment."""
    sections = list(dict.fromkeys([*TITLES, *(setting.section for setting in settings)]))
    sections.sort(key=lambda section: not any(each.name == "env" and each.section == section for each in settings))
    for section in sections:
        group = [setting for setting in settings if setting.section == section]
        if group:
            yield TITLES.get(section, section.capitalize()), sorted(group, key=lambda setting: setting.name != "env")


def _invocation(setting: Setting) -> str:
    if setting.kind is bool:
        return f"{setting.flag}, --no-{setting.flag.removeprefix('--')}"
    return f"{', '.join([*setting.aliases, setting.flag])} {setting.placeholder}"


def _explained(setting: Setting) -> str:
    if setting.default is dataclasses.MISSING:
        return f"{setting.text} (required)"
    return f"{setting.text} (default: {_written(setting.default)})"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " ".join(shlex.quote(str(item)) for item in value) or "none"
    return json.dumps("") if value == "" else str(value)


def _group(title: str, entries: Iterable[tuple[str, str]]) -> str:
    return "\n".join([f"{title}:", *(_entry(name, text) for name, text in entries)])


def _entry(name: str, text: str) -> str:
    """Formats one line, or several with the descriptions in one column."""
    lines = textwrap.wrap(text, max(30, _width() - _COLUMN), break_long_words=False, break_on_hyphens=False)
    start = f"  {name}"
    head = [f"{start:<{_COLUMN}}{lines.pop(0)}"] if len(start) <= _COLUMN - 2 else [start]
    return "\n".join([*head, *(" " * _COLUMN + line for line in lines)])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    return min(MOST_COLUMNS, shutil.get_terminal_size((MOST_COLUMNS, 24)).columns)
