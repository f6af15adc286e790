"""Configurations, frozen dataclasses with sections, as flat settings and as flags."""

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import tyro

from kubebeast_common.access.addresses import absolute_socket
from kubebeast_common.access.places import absolute
from kubebeast_common.settings import ConfigError

SectionT = TypeVar("SectionT")
JsonObject = Annotated[str, "a JSON object; a mapping in a YAML file"]
"""Type of settings that hold the text of a JSON object."""

HIDDEN: Mapping[str, Any] = {"hidden": True}
"""Metadata of a field that is no setting: no source sets it, and no file shows it."""
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# Nulls of YAML's core schema, and Python's, which flags accept.
_NULLS = ("", "~", "null", "none")


def visible_fields(config_type: Any) -> list["dataclasses.Field[Any]"]:
    """Returns the sections and settings of a configuration, or of its class."""
    return [field for field in dataclasses.fields(config_type) if "hidden" not in field.metadata]


def setting_types(config_type: type) -> dict[str, Any]:
    """Returns setting name to type, over all sections of a configuration class, without positional arguments."""
    return {field.name: field.type for field in setting_fields(config_type)}


def setting_fields(config_type: Any) -> Iterator["dataclasses.Field[Any]"]:
    """Yields the fields of all sections, without positional arguments."""
    for field in visible_fields(config_type):
        if dataclasses.is_dataclass(field.type):
            yield from setting_fields(field.type)
        elif tyro.conf.Positional not in getattr(field.type, "__metadata__", ()):
            yield field


def as_settings(config: Any) -> dict[str, Any]:
    """Returns a configuration as flat plain values, the content of config.yaml and of checkpoints."""
    settings: dict[str, Any] = {}
    for field in visible_fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            settings |= as_settings(value)
        else:
            settings[field.name] = _as_plain(value)
    return settings


def as_flags(config: object, without: Collection[str] = ()) -> list[str]:
    """Returns a configuration, except for the settings `without`, as flags that override all other sources."""
    types = setting_types(type(config))
    settings = {name: value for name, value in as_settings(config).items() if value != [] and name not in without}
    return [flag for name, value in settings.items() for flag in flags_of(name, value, types[name], "flags")]


def section_from_settings(section_type: type[SectionT], settings: Mapping[str, Any]) -> SectionT:
    """Builds one section, e.g. ModelConfig, from flat settings; others are ignored, missing ones have defaults."""
    values: dict[str, Any] = {}
    for name, kind in setting_types(section_type).items():
        if name in settings:
            values[name] = tuple(settings[name]) if get_origin(kind) is tuple else settings[name]
    return section_type(**values)


def with_settings(config: SectionT, settings: Mapping[str, Any]) -> SectionT:
    """Returns a configuration with other values of flat settings, in whichever sections they are. Lists are tuples."""
    section: Any = config
    changed: dict[str, Any] = {}
    for field in visible_fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            changed[field.name] = with_settings(value, settings)
        elif field.name in settings:
            given = settings[field.name]
            changed[field.name] = tuple(given) if isinstance(given, list) else given
    replaced: SectionT = dataclasses.replace(section, **changed)
    return replaced


def made_absolute(config: SectionT) -> SectionT:
    """Returns a configuration with absolute paths in all sections, and with the home folder in place of ~; a savedir
    may be a URL.

    Environments, models and losses may change the working directory.
    """
    section: Any = config
    fields = dataclasses.fields(section)
    values = {field.name: _absolute(field.name, getattr(config, field.name)) for field in fields}
    resolved: SectionT = dataclasses.replace(section, **values)
    return resolved


def _absolute(name: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return made_absolute(value)
    if isinstance(value, Path):
        return value.expanduser().absolute()
    if name == "savedir":
        return absolute(value)
    return absolute_socket(value) if name == "address" else value


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def flags_of(name: str, value: object, kind: Any, source: str) -> list[str]:
    """Returns the flags that set one setting. Raises ConfigError, which names `source`, for a value of a wrong kind."""
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
