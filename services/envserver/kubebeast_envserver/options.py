"""Options of a command line, which are the fields of a dataclass: defaults < YAML file < environment < flags."""

import argparse
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any, TypeVar

from kubebeast_common.settings import ConfigError, parse_json, read_environment, read_file, require
from kubebeast_common.spec.env_config import Wrapper, parse_wrappers

OptionsT = TypeVar("OptionsT")


def option(default: Any, text: str) -> Any:
    """Returns a field of a dataclass of options with its --help text."""
    return field(default=default, metadata={"help": text})


def parse_options(
    parser: argparse.ArgumentParser,
    options_type: type[OptionsT],
    arguments: Sequence[str],
    environ: Mapping[str, str],
    positional: str = "",
) -> OptionsT:
    """Adds the fields of `options_type` to `parser`, and parses a command line.

    Args:
        environ: Variables; KUBEBEAST_<FIELD> sets a field.
        positional: Field that is an argument instead of a flag.

    Raises:
        ConfigError: If a value is invalid.
        SystemExit: For --help and unknown flags.
    """
    config_help = "YAML file of settings, name: value; KUBEBEAST_<NAME> variables and flags override it"
    parser.add_argument("--config", metavar="FILE", help=config_help)
    declared: Any = options_type
    options: dict[str, Field[Any]] = {each.name: each for each in fields(declared)}
    for name, each in options.items():
        text = each.metadata["help"]
        if name == positional:
            parser.add_argument(name, metavar=name.upper(), help=text)
        elif each.type is bool:
            parser.add_argument(*_spellings(name), dest=name, action="store_const", const="true", help=text)
        else:
            parser.add_argument(*_spellings(name), dest=name, metavar="VALUE", help=text)
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_hint(unknown, options)}")
    flags = vars(known)
    file = flags.pop("config")
    settings = read_file(Path(file).expanduser(), options) if file else {}
    settings |= read_environment(environ, options)
    settings |= {name: text for name, text in flags.items() if text is not None}
    return options_type(**{name: _convert(options[name], value) for name, value in settings.items()})


def _spellings(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


_CONVERTERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    int | None: int,
    float: float,
    bool: _truth,
    dict[str, Any]: parse_json,
    tuple[Wrapper, ...]: parse_wrappers,
}
"""Converters by the type of a field; other fields are strings."""


def _convert(field: Field[Any], value: object) -> Any:
    name = field.name
    require(isinstance(value, str), name, value, "must be a single value")
    try:
        return _CONVERTERS.get(field.type, str)(str(value))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} = {value!r}: {error}") from error


def _hint(unknown: Sequence[str], names: Iterable[str]) -> str:
    """Returns a suggestion of flags that resemble the unknown ones; empty if there are none."""
    flags = [f"--{name.replace('_', '-')}" for name in names]
    words = [word.partition("=")[0].replace("_", "-") for word in unknown if word.startswith("--")]
    near = [match for word in words for match in difflib.get_close_matches(word, flags, n=1)]
    return f"; did you mean {', '.join(near)}?" if near else ""
