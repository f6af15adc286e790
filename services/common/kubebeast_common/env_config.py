"""How an environment is made, beside its id: what Hello.env_config tells, and what evaluation makes it by again."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

MAX_CHARACTERS = 8192
"""Of Hello.env_config."""
MAX_DEPTH = 32
"""Objects and arrays inside each other: those who copy and write them later call themselves for each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvConfig:
    preset: str
    """The Atari preset that is applied, "none" without; never "auto"."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment or overrides of the preset, as JSON has them."""

    def __str__(self) -> str:
        kwargs = f", kwargs {json.dumps(self.kwargs, sort_keys=True)}" if self.kwargs else ""
        return f"preset {self.preset}{kwargs}"

    def to_json(self) -> str:
        """Canonical: equal configurations give equal text. ValueError for arguments that JSON has not."""
        value = {"kwargs": self.kwargs, "preset": self.preset}
        try:
            return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    @classmethod
    def from_json(cls, text: str) -> "EnvConfig":
        """From what another process sent; keys of newer versions are passed over. ValueError says what is wrong."""
        try:
            value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if _is_deeper(value, MAX_DEPTH):
            raise ValueError(f"nested too deeply: at most {MAX_DEPTH} objects and arrays inside each other")
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        preset, kwargs = value.get("preset"), value.get("kwargs", {})
        if not isinstance(preset, str) or not preset.isprintable():
            raise ValueError(f"preset is {preset!r}, not a printable text")
        if not isinstance(kwargs, dict):
            raise ValueError(f"kwargs are {kwargs!r}, not an object")
        return cls(preset=preset, kwargs=kwargs)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(number: str) -> float:
    """Of a number's text: JSON has some that are too large for a float, which Python reads as infinite."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no finite number")
    return value


def _is_deeper(value: object, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [child for parent in level for child in _children(parent)]
    return any(isinstance(parent, dict | list) for parent in level)


def _children(parent: object) -> Iterable[object]:
    if isinstance(parent, dict):
        return parent.values()
    return parent if isinstance(parent, list) else ()
