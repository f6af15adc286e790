"""JSON Schema of the settings that the chart passes on, from the dataclasses that define them."""

import ast
import dataclasses
import inspect
import json
import textwrap
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kubebeast_envserver.config import EnvServerConfig, Preset
from kubebeast_learner.config import EvalConfig, LearnerConfig
from kubebeast_learner.config.checks import JsonObject
from kubebeast_learner.config.recipes import RECIPES

Schema = dict[str, Any]

LEARNER_OWNED = frozenset(
    ("address", "http_address", "linger", "progress", "savedir", "tls_ca", "tls_cert", "tls_key", "token_file", "xpid")
)
"""Settings that the chart's templates give; they are no part of learner.config."""
EVALUATOR_OWNED = frozenset(("checkpoint", "follow", "http_address", "json", "linger", "savedir", "xpid"))
"""Settings that belong to the chart; they are no part of evaluator.config."""
ENVSERVER_OWNED = frozenset(
    (
        *("address", "env", "env_kwargs", "env_server_id", "envs_per_stream", "http_address", "listen", "max_steps"),
        *("num_streams", "preset", "seed", "time_limit", "tls_ca", "tls_cert", "tls_key", "tls_server_name"),
        *("token_file", "wrappers"),
    )
)
"""Settings that the chart's templates give, some from values of their own."""

_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}
_MAY_BE_NULL = ("passthrough", "probe", "stringMap")
"""Definitions of what an object is made without where it is null."""


def with_generated_parts(schema_text: str, values: Mapping[str, Any]) -> str:
    """The chart's values.schema.json with what follows from elsewhere: the definitions of settings, and what of the
    default values must not be missing. The rest is kept.
    """
    schema: Schema = json.loads(schema_text)
    schema["$defs"] |= {
        "learnerConfig": settings_schema(LearnerConfig, LEARNER_OWNED),
        "evalConfig": settings_schema(EvalConfig, EVALUATOR_OWNED),
        "envserverConfig": settings_schema(EnvServerConfig, ENVSERVER_OWNED),
        "recipe": {"enum": ["none", *(recipe.name for recipe in RECIPES)]},
        "preset": {"enum": list(get_args(Preset))},
    }
    _require(schema, values)
    _require(schema["$defs"]["envserverDefaults"], values["envserverDefaults"], depth=1)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _require(node: Schema, values: Mapping[str, Any], depth: int = 9) -> None:
    """Sets what is required of an object and, to that depth, of those in it: all that is not empty by default.

    Helm takes a key with null out of the values, and templates would make 0, false or nothing of it. Definitions that
    others share stay as they are: an entry of a list of groups says only what it changes.
    """
    node["required"] = [key for key, value in values.items() if value and not _may_be_null(node["properties"][key])]
    if not node["required"]:
        del node["required"]
    for key, value in values.items():
        child = node["properties"][key]
        if depth > 1 and isinstance(value, Mapping) and "properties" in child:
            _require(child, value, depth - 1)


def _may_be_null(schema: Schema) -> bool:
    return "null" in schema.get("type", ()) or schema.get("$ref") in [f"#/$defs/{name}" for name in _MAY_BE_NULL]


def settings_schema(config_type: type, owned: frozenset[str]) -> Schema:
    """An object of a configuration's settings, flat and without those in `owned`.

    ValueError for an owned setting that does not exist, or a field whose type has no schema.
    """
    settings = _settings(config_type)
    unknown = owned - settings.keys()
    if unknown:
        raise ValueError(f"{config_type.__name__} has no {', '.join(sorted(unknown))}")
    properties: dict[str, Schema] = {}
    for name, (kind, description) in settings.items():
        if name not in owned:
            try:
                properties[name] = {"description": description, **_type_schema(kind)}
            except KeyError as error:
                raise ValueError(f"{config_type.__name__}: {name}: no schema for {kind}") from error
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _settings(config_type: type) -> dict[str, tuple[Any, str]]:
    """Setting name to type and description, over all sections."""
    settings: dict[str, tuple[Any, str]] = {}
    hints = get_type_hints(config_type, include_extras=True)
    documented = {name: text for base in _dataclasses(config_type) for name, text in _docstrings(base).items()}
    for field in dataclasses.fields(config_type):
        kind = hints[field.name]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            settings |= _settings(kind)
        else:
            settings[field.name] = (kind, field.metadata.get("help") or documented[field.name])
    return settings


def _dataclasses(config_type: type) -> list[type]:
    """The class and those that it inherits settings from."""
    return [base for base in config_type.__mro__ if dataclasses.is_dataclass(base)]


def _type_schema(kind: Any) -> Schema:
    """KeyError for a type that settings do not have so far."""
    if kind == JsonObject:
        return {"type": ["object", "string"]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _type_schema(get_args(kind)[0])}
    if get_origin(kind) in (Union, types.UnionType):
        (inner,) = (part for part in get_args(kind) if part is not type(None))
        # Helm drops a null under some of its merges; the learner reads the word as well.
        return {"anyOf": [{"type": [_TYPES[inner], "null"]}, {"const": "none"}]}
    return {"type": _TYPES[kind]}


def _docstrings(config_type: type) -> dict[str, str]:
    """Field name to the string below it, on one line."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(config_type))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found
