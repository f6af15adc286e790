"""Settings from files and environment variables, and the error for invalid values."""

import difflib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kubebeast_common.variables import PREFIX

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""Scheme of a URL (RFC 3986, 3.1). One slash suffices, because Path collapses two."""


class ConfigError(Exception):
    """An invalid configuration value. The message has the field, the value and the reason.

    It is no ValueError, because tyro would catch that and print it in a box.
    """


def require(condition: bool, name: str, value: object, reason: str) -> None:
    """Raises ConfigError unless `condition` is true; `reason` states the requirement on the value."""
    if not condition:
        raise ConfigError(f"{name} = {value!r}: {reason}")


def require_at_least(least: int, config: object, *names: str) -> None:
    """Raises ConfigError unless each of these settings is None or at least `least`."""
    reason = f"must be at least {least}" if least else "must not be negative"
    for name in names:
        value = getattr(config, name)
        require(value is None or value >= least, name, value, reason)


def require_positive(config: object, *names: str) -> None:
    """Raises ConfigError unless each of these settings is None or positive."""
    for name in names:
        value = getattr(config, name)
        require(value is None or value > 0, name, value, "must be positive")


def require_local(config: object, *names: str) -> None:
    """Raises ConfigError if a path is a URL, which would become a folder of that name. None is valid."""
    for name in names:
        value = getattr(config, name)
        is_url = value is not None and _URL.match(str(value)) is not None
        require(not is_url, name, str(value), "is a URL: only paths of mounted file systems can be read and written")


def read_file(path: Path, names: Collection[str]) -> dict[str, object]:
    """Reads flat `name: value` lines of YAML. Scalars stay text, so that `xpid: 007` keeps its zeros; scalars within a
    mapping are typed.

    names are the known settings. Raises ConfigError for an unreadable file and for an unknown setting.
    """
    content, typed = _load("config", path, names)
    return {name: typed[name] if isinstance(value, dict) else value for name, value in content.items()}


def read_typed_file(setting: str, path: Path, names: Collection[str]) -> dict[str, Any]:
    """Reads `name: value` lines of YAML with typed scalars. `setting` names the file.

    names are the known names. Raises ConfigError for an unreadable file and for an unknown name.
    """
    return _load(setting, path, names)[1]


def _load(setting: str, path: Path, names: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the content of a file with scalars as texts, and with typed ones."""
    import yaml  # not imported by processes that read no file

    place = f"{setting} = {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.load(text, Loader=yaml.BaseLoader)
        typed = yaml.load(text, Loader=_typed_loader())
    except OSError as error:
        raise ConfigError(f"{place}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, or a number with thousands of digits
        raise ConfigError(f"{place}: not YAML: {error}") from error
    if content in (None, ""):
        return {}, {}
    if not isinstance(content, dict):
        raise ConfigError(f"{place}: must hold lines of the form name: value")
    for name, value in content.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{name} = {value!r}: file {path}: there is no such setting{hint}")
    return content, typed


def _typed_loader() -> Any:
    """Returns a loader of YAML 1.2's core schema, a superset of JSON's. In PyYAML's YAML 1.1, `1e-5` is text and `on`
    is true.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Refuses a key that is given twice (YAML 1.2.2, 3.2.1.3), of which PyYAML takes the last value."""
            content = super().construct_mapping(node, deep)
            names = [self.construct_object(key) for key, _ in node.value]
            for place, name in enumerate(names):
                if name in names[:place]:
                    mark = node.value[place][0].start_mark
                    raise yaml.constructor.ConstructorError(None, None, f"{name!r} is given twice", mark)
            return content

    Loader.yaml_implicit_resolvers = {}
    for kind, pattern in _CORE_SCHEMA.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{pattern})\Z"), None)
    return Loader


def parse_json(text: str) -> Any:
    """Parses JSON. Raises ValueError for other text, and if an object has a name twice, of which `json` takes the last
    value (RFC 8259, section 4); RecursionError for thousands of brackets.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    for name in content if len(content) < len(pairs) else ():
        if sum(name == other for other, _ in pairs) > 1:
            raise ValueError(f"{name!r} is given twice")
    return content


_CORE_SCHEMA = {
    "null": "null|~|",
    "bool": "true|false",
    "int": r"[-+]?(?:0|[1-9]\d*)",
    "float": r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?",
}


def read_environment(environ: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Returns KUBEBEAST_<NAME> of known settings. Others are ignored, as Kubernetes sets variables for each Service."""
    variables = {name: PREFIX + name.upper() for name in names}
    return {name: environ[variable] for name, variable in variables.items() if variable in environ}
