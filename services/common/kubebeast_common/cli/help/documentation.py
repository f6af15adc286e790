"""Descriptions of settings: the string below each field of a dataclass, and the notation of its value."""

import ast
import dataclasses
import functools
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import tyro

from kubebeast_common.cli.settings import JsonObject, visible_fields

_WORDS: Mapping[Any, str] = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH", type(None): "none"}


class Setting(NamedTuple):
    """A field of a configuration."""

    name: str
    section: str
    """Field of the configuration that holds the setting's section; "" for a setting of its own."""
    kind: Any
    """Type of the field, without annotations."""
    placeholder: str
    """Placeholder of the value in a line of help; "" for a switch."""
    aliases: tuple[str, ...]
    is_positional: bool
    default: Any
    """Default value; dataclasses.MISSING without one."""
    text: str
    """Description, on one line."""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def settings_of(config_type: type, section: str = "", *, instance: Any = None) -> Iterator[Setting]:
    """Yields the settings in the order of the fields, including those of sections.

    Defaults are those of `instance`, or of the type if it is None.
    """
    hints = get_type_hints(config_type, include_extras=True)
    for field in visible_fields(config_type):
        kind = hints[field.name]
        default = _default(field) if instance is None else getattr(instance, field.name)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            yield from settings_of(kind, field.name, instance=None if default is dataclasses.MISSING else default)
            continue
        is_json, (kind, extras) = kind == JsonObject, _without_annotations(kind)
        metavar = next((extra.metavar for extra in extras if getattr(extra, "metavar", None)), None)
        yield Setting(
            name=field.name,
            section=section,
            kind=kind,
            placeholder=metavar or ("JSON" if is_json else _placeholder(kind)),
            aliases=tuple(alias for extra in extras for alias in getattr(extra, "aliases", None) or ()),
            is_positional=any(extra is tyro.conf.Positional for extra in extras),
            default=default,
            text=docstrings(config_type)[field.name],
        )


def docstrings(config_type: type) -> dict[str, str]:
    """Returns field name to docstring, on one line, including inherited fields."""
    found: dict[str, str] = {}
    for base in reversed(config_type.__mro__):
        if dataclasses.is_dataclass(base):
            found |= _own_docstrings(base)
    return found


@functools.cache
def _own_docstrings(config_type: type) -> Mapping[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(config_type))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _without_annotations(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the type and its annotations."""
    if get_origin(kind) is not Annotated:
        return kind, ()
    inner, *extras = get_args(kind)
    kind, inner_extras = _without_annotations(inner)
    return kind, (*inner_extras, *extras)


def _placeholder(kind: Any) -> str:
    if kind is bool:
        return ""
    if get_origin(kind) is Literal:
        return "{" + ",".join(map(str, get_args(kind))) + "}"
    if get_origin(kind) is tuple:
        return f"[{_placeholder(get_args(kind)[0])} ...]"
    if get_origin(kind) in (Union, types.UnionType):
        return "|".join(_placeholder(part) for part in get_args(kind))
    return _WORDS[kind]
