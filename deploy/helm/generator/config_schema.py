"""JSON Schema of the settings in the chart's values, generated from their dataclasses."""

import dataclasses
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kubebeast_common.cli.help.documentation import docstrings
from kubebeast_common.cli.settings import JsonObject, visible_fields
from kubebeast_envserver.config import EnvServerConfig, Preset
from kubebeast_learner.config import EvalConfig, LearnerConfig
from kubebeast_learner.config.recipes import KIND, RECIPES

Schema = dict[str, Any]

LEARNER_OWNED = frozenset(
    (
        *("address", "http_address", "linger", "linger_s", "node_notice", "progress", "savedir", "stop_status"),
        *("tls_ca", "tls_cert", "tls_key", "token_file", "wait_for_run", "xpid"),
    )
)
"""Settings that the chart's templates set; learner.config does not accept them."""
EVALUATOR_OWNED = frozenset(
    (
        *("best", "best_evaluator", "checkpoint", "follow", "http_address", "json", "linger", "name", "savedir"),
        *("trust_checkpoint", "xpid"),
    )
)
"""Settings that the chart's templates set; evaluator.config does not accept them."""
ENVSERVER_OWNED = frozenset(
    (
        *("address", "env", "env_kwargs", "env_server_id", "envs_per_stream", "http_address", "listen", "max_steps"),
        *("num_streams", "preset", "run", "seed", "time_limit", "tls_ca", "tls_cert", "tls_key", "tls_server_name"),
        *("token_file", "wrappers"),
    )
)
"""Settings that the chart's templates set, some of them from other values, e.g. num_streams from numStreams."""

_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}
_MAY_BE_NULL = ("passthrough", "probe", "stringMap")
"""Definitions of values that may be null: the object is then created without them."""
_MISSING = (
    "required values are missing, see the other lines. helm upgrade --reuse-values keeps the defaults of the previous "
    "chart, --reset-then-reuse-values (Helm 3.14) uses the defaults of this chart. A null removes a value"
)
"""Helm shows this next to the names of required values."""


def with_generated_parts(schema_text: str, values: Mapping[str, Any]) -> str:
    """The chart's values.schema.json with its generated parts: the definitions of settings, and the default values that
    are required. The rest is unchanged.
    """
    schema: Schema = json.loads(schema_text)
    schema["$defs"] |= {
        "learnerConfig": settings_schema(LearnerConfig, LEARNER_OWNED),
        "evalConfig": settings_schema(EvalConfig, EVALUATOR_OWNED),
        "envserverConfig": settings_schema(EnvServerConfig, ENVSERVER_OWNED),
        "recipe": {"enum": ["none", KIND, *(recipe.name for recipe in RECIPES)]},
        "preset": {"enum": list(get_args(Preset))},
    }
    _require(schema, values)
    _require(schema["$defs"]["envserverDefaults"], values["envserverDefaults"], depth=1)
    _require(schema["$defs"]["evaluator"], values["evaluator"])
    _refer(schema, "namedEvaluator", "evaluator")
    _refer(schema, "envserver", "envserverDefaults")
    _refer(schema, "namedEnvserver", "envserver")
    # If a constant does not match, Helm prints its expected value.
    schema["if"], schema["else"] = _presence(schema, schema["$defs"]), {"const": _MISSING}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _require(node: Schema, values: Mapping[str, Any], depth: int = 9) -> None:
    """Sets the required keys of an object, and of the objects in it down to `depth`: all that are not empty by default.

    Helm removes a key with null from the values, and templates would turn it into 0, false or an empty string. Shared
    definitions are unchanged, because an entry of envservers contains only the values that it changes.
    """
    node["required"] = [key for key, value in values.items() if value and not _may_be_null(node["properties"][key])]
    if not node["required"]:
        del node["required"]
    for key, value in values.items():
        child = node["properties"][key]
        if depth > 1 and isinstance(value, Mapping) and "properties" in child:
            _require(child, value, depth - 1)


def _refer(schema: Schema, name: str, other: str) -> None:
    """Makes the definition `name` refer to the properties of `other`, but for those that it defines itself."""
    own: Schema = schema["$defs"][name]["properties"]
    others = schema["$defs"][other]["properties"]
    path = f"#/$defs/{other}/properties/"
    kept = {key: value for key, value in own.items() if value.get("$ref") != path + key}
    first = {key: value for key, value in kept.items() if key not in others}
    schema["$defs"][name]["properties"] = first | {key: kept.get(key, {"$ref": path + key}) for key in others}


def _presence(node: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The parts of a schema that list the required keys, including those of nested maps."""
    node = definitions.get(node.get("$ref", "").removeprefix("#/$defs/"), node)
    inner = {key: _presence(child, definitions) for key, child in node.get("properties", {}).items()}
    inner = {key: child for key, child in inner.items() if child}
    return {
        **({"required": node["required"]} if "required" in node else {}),
        **({"properties": inner} if inner else {}),
    }


def _may_be_null(schema: Schema) -> bool:
    return "null" in schema.get("type", ()) or schema.get("$ref") in [f"#/$defs/{name}" for name in _MAY_BE_NULL]


def settings_schema(config_type: type, owned: frozenset[str]) -> Schema:
    """The settings of a configuration as one flat object, without those in `owned`.

    ValueError if an owned setting does not exist, or if the type of a field has no schema.
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
    """Type and description of each setting by name, over all sections."""
    settings: dict[str, tuple[Any, str]] = {}
    hints = get_type_hints(config_type, include_extras=True)
    documented = docstrings(config_type)
    for field in visible_fields(config_type):
        kind = hints[field.name]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            settings |= _settings(kind)
        else:
            settings[field.name] = (kind, field.metadata.get("help") or documented[field.name])
    return settings


def _type_schema(kind: Any) -> Schema:
    """KeyError if no setting has had this type so far."""
    if kind == JsonObject:
        return {"type": ["object", "string"]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _type_schema(get_args(kind)[0])}
    if get_origin(kind) in (Union, types.UnionType):
        (inner,) = (part for part in get_args(kind) if part is not type(None))
        # Helm drops a null in some of its merges, so the learner accepts the word "none" too.
        return {"anyOf": [{"type": [_TYPES[inner], "null"]}, {"const": "none"}]}
    return {"type": _TYPES[kind]}
