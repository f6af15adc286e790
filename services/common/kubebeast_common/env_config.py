"""How an environment is made, beside its id: what Hello.env_config tells, and what evaluation makes it by again."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

MAX_CHARACTERS = 8192
"""Of Hello.env_config."""
MAX_DEPTH = 32
"""Objects and arrays inside each other: those who copy and write them later call themselves for each."""
_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
"""module:Name"""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A callable that takes an environment and returns one: name(env, **kwargs)."""

    name: str
    """module:Name"""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """As JSON has them."""

    def __str__(self) -> str:
        return f"{self.name} {json.dumps(self.kwargs, sort_keys=True)}" if self.kwargs else self.name

    def to_plain(self) -> str | dict[str, Any]:
        """The name or, with arguments, {name: arguments}."""
        return {self.name: dict(self.kwargs)} if self.kwargs else self.name

    @classmethod
    def from_plain(cls, value: object) -> "Wrapper":
        """The inverse of `to_plain`. ValueError says what is wrong."""
        entry = {value: {}} if isinstance(value, str) else value
        if not isinstance(entry, dict) or len(entry) != 1:
            raise ValueError(f'{value!r} is neither "module:Name" nor {{"module:Name": {{arguments}}}}')
        ((name, kwargs),) = entry.items()
        if not isinstance(name, str) or not _PLACE.fullmatch(name):
            raise ValueError(f"{name!r} is not of the form module:Name")
        if not isinstance(kwargs, dict):
            raise ValueError(f"the arguments of {name} are {kwargs!r}, not an object")
        return cls(name, kwargs)


def parse_wrappers(text: str) -> tuple[Wrapper, ...]:
    """Of a setting, in the order in which they are applied: names separated by commas, or a JSON list of `to_plain`.

    ValueError says what is wrong.
    """
    if not text.strip().startswith("["):
        return tuple(Wrapper.from_plain(name.strip()) for name in text.split(",")) if text.strip() else ()
    return _wrappers(_loaded(text))


def format_wrappers(wrappers: Sequence[Wrapper]) -> str:
    """What `parse_wrappers` reads: JSON only where there is no other way."""
    if not wrappers or any(wrapper.kwargs for wrapper in wrappers):
        return json.dumps([wrapper.to_plain() for wrapper in wrappers], sort_keys=True)
    return ",".join(wrapper.name for wrapper in wrappers)


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvConfig:
    preset: str
    """The Atari preset that is applied, "none" without; never "auto"."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment or overrides of the preset, as JSON has them."""
    wrappers: tuple[Wrapper, ...] = ()
    """Around each environment, the innermost first."""
    time_limit: int = 0
    """Steps after which an episode is truncated; 0: after as many as the environment itself says."""

    def __str__(self) -> str:
        parts = [f"preset {self.preset}"]
        if self.kwargs:
            parts.append(f"kwargs {json.dumps(self.kwargs, sort_keys=True)}")
        if self.wrappers:
            parts.append(f"wrappers {', '.join(map(str, self.wrappers))}")
        if self.time_limit:
            parts.append(f"time limit {self.time_limit}")
        return ", ".join(parts)

    def to_plain(self) -> dict[str, Any]:
        """What JSON and checkpoints hold; wrappers and time limit only where there are some."""
        plain: dict[str, Any] = {"kwargs": dict(self.kwargs), "preset": self.preset}
        if self.time_limit:
            plain["time_limit"] = self.time_limit
        if self.wrappers:
            plain["wrappers"] = [wrapper.to_plain() for wrapper in self.wrappers]
        return plain

    def to_json(self) -> str:
        """Canonical: equal configurations give equal text. ValueError for arguments that JSON has not."""
        try:
            return json.dumps(self.to_plain(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    @classmethod
    def from_plain(cls, value: object) -> "EnvConfig":
        """The inverse of `to_plain`; keys of newer versions are passed over. ValueError says what is wrong."""
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        preset, kwargs, time_limit = value.get("preset"), value.get("kwargs", {}), value.get("time_limit", 0)
        if not isinstance(preset, str) or not preset.isprintable():
            raise ValueError(f"preset is {preset!r}, not a printable text")
        if not isinstance(kwargs, dict):
            raise ValueError(f"kwargs are {kwargs!r}, not an object")
        if type(time_limit) is not int or time_limit < 0:
            raise ValueError(f"time_limit is {time_limit!r}, not a number of steps")
        return cls(preset=preset, kwargs=kwargs, wrappers=_wrappers(value.get("wrappers", [])), time_limit=time_limit)

    @classmethod
    def from_json(cls, text: str) -> "EnvConfig":
        """`from_plain` of what another process sent. ValueError says what is wrong."""
        return cls.from_plain(_loaded(text))


def _wrappers(entries: object) -> tuple[Wrapper, ...]:
    if not isinstance(entries, list):
        raise ValueError(f"wrappers are {entries!r}, not a list")
    return tuple(map(Wrapper.from_plain, entries))


def _loaded(text: str) -> object:
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"nested too deeply: at most {MAX_DEPTH} objects and arrays inside each other")
    return value


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
