"""Where settings come from: defaults < recipe < YAML file < KUBEBEAST_* environment < flags.

Every source is turned into flags and put before the user's own; of a repeated flag the last one counts. So one parser
checks all sources with the same rules and the same messages.
"""

import argparse
import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import tyro
import yaml

from kubebeast_learner.config import ConfigError
from kubebeast_learner.recipes import Recipe, choose_recipe

SectionT = TypeVar("SectionT")

ENVIRONMENT_PREFIX = "KUBEBEAST_"
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# Of YAML's core schema, and Python's, which is what the flags take.
_NULLS = ("", "~", "null", "none")


@dataclass(frozen=True, slots=True)
class LayeredFlags:
    """The flags of every source in rising precedence, and what was read where."""

    flags: list[str]
    recipe: Recipe | None
    notes: list[str]
    """One line a source, for the log and for error messages."""


def layer_flags(config_type: type, user_flags: Sequence[str], environ: Mapping[str, str]) -> LayeredFlags:
    """Puts the settings of all sources before `user_flags`, which are left as they are.

    ConfigError names the setting, its value and its source when a file or a variable cannot be used.
    """
    scanner = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("config", "recipe", "env"):
        scanner.add_argument(f"--{name}")
    chosen, _ = scanner.parse_known_args([flag for flag in user_flags if flag not in ("-h", "--help")])
    types = setting_types(config_type)
    from_file = _read_file(Path(chosen.config).expanduser(), types) if chosen.config else {}
    from_environment = _read_environment(environ, types)

    env_id = chosen.env or from_environment.get("env") or from_file.get("env") or _default_env(config_type)
    recipe = choose_recipe(chosen.recipe or "auto", str(env_id))
    from_recipe = {k: v for k, v in recipe.settings.items() if k in types} if recipe else {}

    flags: list[str] = []
    notes: list[str] = []
    for source, settings in (
        (f"recipe {recipe.name}" if recipe else "", from_recipe),
        (f"file {chosen.config}", from_file),
        ("environment", from_environment),
    ):
        for name, value in settings.items():
            flags += _as_flags(name, value, types[name], source)
        if settings:
            notes.append(f"{source}: " + ", ".join(f"{name}={value}" for name, value in settings.items()))
    return LayeredFlags([*flags, *user_flags], recipe, notes)


def setting_types(config_type: type) -> dict[str, Any]:
    """Setting name to type, over all sections of a configuration class. What is given by its place has no name."""
    types: dict[str, Any] = {}
    for field in dataclasses.fields(config_type):
        if dataclasses.is_dataclass(field.type):
            types |= setting_types(field.type)  # type: ignore[arg-type]
        elif tyro.conf.Positional not in getattr(field.type, "__metadata__", ()):
            types[field.name] = field.type
    return types


def as_settings(config: object) -> dict[str, Any]:
    """A configuration as flat plain values: what config.yaml holds and what a checkpoint carries."""
    settings: dict[str, Any] = {}
    for field in dataclasses.fields(config):  # type: ignore[arg-type]
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            settings |= as_settings(value)
        else:
            settings[field.name] = _as_plain(value)
    return settings


def section_from_settings(section_type: type[SectionT], settings: Mapping[str, Any]) -> SectionT:
    """Builds one section, e.g. ModelConfig, from flat settings; other settings and missing ones are passed over."""
    values: dict[str, Any] = {}
    for name, kind in setting_types(section_type).items():
        if name in settings:
            values[name] = tuple(settings[name]) if get_origin(kind) is tuple else settings[name]
    return section_type(**values)


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _default_env(config_type: type) -> str:
    """The `env` setting's default, "" for commands without one: their env-servers bring the environment."""
    for field in dataclasses.fields(config_type):
        if dataclasses.is_dataclass(field.type):
            env = _default_env(field.type)  # type: ignore[arg-type]
            if env:
                return env
        elif field.name == "env":
            return str(field.default)
    return ""


def _read_file(path: Path, types: Mapping[str, Any]) -> dict[str, object]:
    """Flat `name: value` lines; scalars stay text, so that `xpid: 007` is what it says."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"config = {str(path)!r}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"config = {str(path)!r}: not YAML: {error}") from error
    if content in (None, ""):
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"config = {str(path)!r}: must hold lines of the form name: value")
    for name, value in content.items():
        if name not in types:
            near = difflib.get_close_matches(name, types, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{name} = {value!r}: file {path}: there is no such setting{hint}")
    return content


def _read_environment(environ: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, object]:
    """KUBEBEAST_<NAME> of known settings; others are passed over, as Kubernetes sets some for each of its services."""
    found: dict[str, object] = {}
    for name, kind in types.items():
        text = environ.get(ENVIRONMENT_PREFIX + name.upper())
        if text is not None:
            found[name] = text.replace(",", " ").split() if get_origin(kind) is tuple else text
    return found


def _as_flags(name: str, value: object, kind: Any, source: str) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if kind is bool:
        truth = _BOOLEANS.get(str(value).lower())
        if truth is None:
            raise ConfigError(f"{name} = {value!r}: {source}: must be true or false")
        return [flag if truth else flag.replace("--", "--no-", 1)]
    if get_origin(kind) is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{name} = {value!r}: {source}: must be a list")
        return [flag, *map(str, value)]
    if isinstance(value, (list, tuple, dict)):
        raise ConfigError(f"{name} = {value!r}: {source}: must be a single value")
    if type(None) in get_args(kind) and str(value).lower() in _NULLS:
        value = None
    return [f"{flag}={value}"]
