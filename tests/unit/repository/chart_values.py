"""Chart values in documents, checked against the chart's schema."""

import functools
import json
from collections.abc import Mapping
from typing import Any

import yaml
from jsonschema import Draft7Validator

from tests.unit.repository.documents import ROOT

CHART = ROOT / "deploy" / "helm" / "kubebeast"
Tree = dict[str, Any]


@functools.cache
def schema() -> Tree:
    return dict(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))


def are_values(document: Any) -> bool:
    """Returns True if the keys of a YAML document are sections of the chart's values."""
    return isinstance(document, dict) and set(document) <= set(schema()["properties"])


def complaints(values: Tree) -> list[str]:
    """Returns the errors that Helm would find in these values on top of the chart's own."""
    values = _over(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), values)
    return [f"{error.json_path}: {error.message}" for error in Draft7Validator(schema()).iter_errors(values)]


def has_path(path: str) -> bool:
    """Returns True if the chart has such a value, e.g. "learner.config.total_steps"."""
    nested: Any = None
    for key in reversed(path.split(".")):
        nested = {key: nested}
    return all(error.validator != "additionalProperties" for error in Draft7Validator(schema()).iter_errors(nested))


def _over(defaults: Any, values: Any) -> Any:
    """Merges maps and replaces everything else."""
    if not isinstance(defaults, Mapping) or not isinstance(values, Mapping):
        return values
    return {**defaults, **{key: _over(defaults.get(key), value) for key, value in values.items()}}
