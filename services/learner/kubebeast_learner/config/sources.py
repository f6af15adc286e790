"""Sources of settings: defaults < recipe < YAML file < KUBEBEAST_* environment < flags.

Every source becomes flags in front of the user's own; the last one of a repeated flag counts. So one parser checks all
sources with the same rules and the same messages.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import tyro

from kubebeast_common.access.addresses import absolute_socket
from kubebeast_common.settings import read_environment, read_file
from kubebeast_common.variables import PREFIX
from kubebeast_learner.config import ConfigError, LocalFleetConfig, TasksConfig
from kubebeast_learner.config.checks import JsonObject
from kubebeast_learner.config.recipes import Recipe, choose_recipe

SectionT = TypeVar("SectionT")

_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# Nulls of YAML's core schema, and Python's, which flags accept.
_NULLS = ("", "~", "null", "none")


@dataclass(frozen=True, slots=True)
class LayeredFlags:
    """Flags of every source, in rising precedence."""

    from_sources: list[str]
    """Flags from recipe, file and environment, and those derived from task_shares and num_learners."""
    from_user: list[str]
    recipe: Recipe | None
    notes: list[str]
    """One line per source with its settings that no other source overrides, for the log, --help and error messages."""

    @property
    def flags(self) -> list[str]:
        return [*self.from_sources, *self.from_user]


def layer_flags(config_type: type, user_flags: Sequence[str], environ: Mapping[str, str]) -> LayeredFlags:
    """Puts the settings of all sources before `user_flags`, which stay unchanged.

    Raises ConfigError with the setting, its value and its source if a file or a variable cannot be used.
    """
    chosen = _scan(user_flags)
    types = setting_types(config_type)
    from_file = read_file(Path(chosen.config).expanduser(), types) if chosen.config else {}
    from_environment: dict[str, object] = {
        name: text.replace(",", " ").split() if get_origin(types[name]) is tuple else text
        for name, text in read_environment(environ, types).items()
    }

    def first(name: str) -> str:
        """Returns the user's value of a setting, or ""."""
        return str(getattr(chosen, name) or from_environment.get(name) or from_file.get(name) or "")

    default_env = next((field.default for field in _setting_fields(config_type) if field.name == "env"), "")
    tasks = TasksConfig(task_shares=first("task_shares") if "task_shares" in types else "").tasks
    from_tasks: dict[str, object] = {"env": tasks[0]} if tasks and not first("env") else {}
    env_id = first("env") or from_tasks.get("env") or default_env
    recipe = choose_recipe(chosen.recipe or "auto", str(env_id))
    from_recipe = {k: v for k, v in recipe.settings.items() if k in types} if recipe else {}
    from_number = _servers_for(first("num_learners"), len(tasks), from_recipe) if "num_servers" in types else {}

    flags: list[str] = []
    notes: list[str] = []
    sources: list[tuple[str, Mapping[str, object]]] = [
        ("task_shares", from_tasks),
        (f"recipe {recipe.name}" if recipe else "", from_recipe),
        ("num_learners and task_shares", from_number),
        (f"file {chosen.config}", from_file),
        ("environment", from_environment),
        ("flags", _named(user_flags)),
    ]
    for rank, (source, settings) in enumerate(sources[:-1]):
        for name, value in settings.items():
            flags += _as_flags(name, value, types[name], source)
        overridden = {name for _, later in sources[rank + 1 :] for name in later}
        if counting := [f"{name}={value}" for name, value in settings.items() if name not in overridden]:
            notes.append(f"{source}: {', '.join(counting)}")
    return LayeredFlags(flags, list(user_flags), recipe, notes)


def _servers_for(num_learners: str, num_tasks: int, from_recipe: Mapping[str, object]) -> dict[str, object]:
    """Returns num_servers, one for each task of each learner, if the recipe or the default has fewer."""
    least = max(1, num_tasks) * (int(num_learners) if num_learners.isdecimal() else 1)
    usual = from_recipe.get("num_servers", LocalFleetConfig().num_servers)
    return {"num_servers": least} if isinstance(usual, int) and least > usual else {}


def log_format_of(user_flags: Sequence[str], environ: Mapping[str, str]) -> str:
    """Returns the setting log_format before any validation, for messages until then."""
    return _scan(user_flags).log_format or environ.get(f"{PREFIX}LOG_FORMAT") or "auto"


def setting_types(config_type: type) -> dict[str, Any]:
    """Returns setting name to type, over all sections of a configuration class, without positional arguments."""
    return {field.name: field.type for field in _setting_fields(config_type)}


def _setting_fields(config_type: Any) -> Iterator["dataclasses.Field[Any]"]:
    for field in dataclasses.fields(config_type):
        if dataclasses.is_dataclass(field.type):
            yield from _setting_fields(field.type)
        elif tyro.conf.Positional not in getattr(field.type, "__metadata__", ()):
            yield field


def as_settings(config: object) -> dict[str, Any]:
    """Returns a configuration as flat plain values, the content of config.yaml and of checkpoints."""
    settings: dict[str, Any] = {}
    for field in dataclasses.fields(config):  # type: ignore[arg-type]
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            settings |= as_settings(value)
        else:
            settings[field.name] = _as_plain(value)
    return settings


def as_flags(config: object) -> list[str]:
    """Returns a configuration as flags that reproduce it, independently of other sources."""
    types = setting_types(type(config))
    settings = {name: value for name, value in as_settings(config).items() if value != []}
    return [flag for name, value in settings.items() for flag in _as_flags(name, value, types[name], "flags")]


def section_from_settings(section_type: type[SectionT], settings: Mapping[str, Any]) -> SectionT:
    """Builds one section, e.g. ModelConfig, from flat settings; others are ignored, missing ones have defaults."""
    values: dict[str, Any] = {}
    for name, kind in setting_types(section_type).items():
        if name in settings:
            values[name] = tuple(settings[name]) if get_origin(kind) is tuple else settings[name]
    return section_type(**values)


def made_absolute(config: SectionT) -> SectionT:
    """Returns a configuration with absolute paths in all sections, and with the home folder in place of ~.

    Environments, models and losses may change the working directory.
    """
    fields: Any = dataclasses.fields(config)  # type: ignore[arg-type]
    values = {field.name: _absolute(field.name, getattr(config, field.name)) for field in fields}
    return dataclasses.replace(config, **values)  # type: ignore[type-var]


def _absolute(name: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return made_absolute(value)
    if isinstance(value, Path):
        return value.expanduser().absolute()
    return absolute_socket(value) if name == "address" else value


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _scan(user_flags: Sequence[str]) -> argparse.Namespace:
    """Parses the flags that determine the parsing of all others; None for a flag that is absent or has no value."""
    scanner = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("config", "recipe", "env", "task-shares", "num-learners", "log-format"):
        scanner.add_argument(*dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}")), nargs="?")
    return scanner.parse_known_args([flag for flag in user_flags if flag not in ("-h", "--help")])[0]


def _named(flags: Sequence[str]) -> dict[str, object]:
    """Returns the settings that flags name, without their values."""
    names = [flag[2:].partition("=")[0].replace("-", "_") for flag in flags if flag.startswith("--")]
    return dict.fromkeys([*names, *(name.removeprefix("no_") for name in names)])


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
    if kind == JsonObject and isinstance(value, dict):
        return [f"{flag}={json.dumps(value)}"]
    if isinstance(value, (list, tuple, dict)):
        raise ConfigError(f"{name} = {value!r}: {source}: must be a single value")
    if type(None) in get_args(kind) and str(value).lower() in _NULLS:
        value = None
    return [f"{flag}={value}"]
