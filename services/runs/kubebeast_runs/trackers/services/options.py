"""Options of the trackers of services, from the setting `tracker_options`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from kubebeast_common.settings import require


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceOptions:
    """Options of every service."""

    checkpoints: bool = False
    """Upload the weights of each checkpoint."""
    timeout_s: float = 30.0
    """Longest wait for the service to take a row, and for the last rows at the end of the run, in seconds."""


def parse_options(service: str, kind: type[ServiceOptions], given: Mapping[str, Any]) -> ServiceOptions:
    """Returns the options of a service, of the dataclass `kind`, from values of JSON.

    Raises ConfigError for an unknown option, or for a value of another type.
    """
    setting = f"tracker_options: {service}"
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in given.items():
        require(name in types, f"{setting}.{name}", value, f"there is no such option, but {', '.join(types)}")
        require(_fits(value, types[name]), f"{setting}.{name}", value, f"must be {_description(types[name])}")
        values[name] = tuple(value) if isinstance(value, list) else value
    options = kind(**values)
    require(options.timeout_s > 0, f"{setting}.timeout_s", options.timeout_s, "must be positive")
    return options


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind)


def _description(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    if get_origin(kind) is tuple:
        return "a list of texts"
    return {bool: "true or false", float: "a number"}.get(kind, "a text")
