"""Configuration of an environment in addition to its id, sent in Hello.env_config and reused by evaluation."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubebeast_common.spec import peer_json

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
"""module:Name"""


STATISTICS_KEEPERS = frozenset({"NormalizeObservation", "NormalizeReward"})
"""Names of gymnasium's wrappers that keep statistics, for single and vector environments."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A callable that wraps an environment: name(env, **kwargs)."""

    name: str
    """module:Name"""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments, as JSON values."""

    def __str__(self) -> str:
        return f"{self.name} {json.dumps(self.kwargs, sort_keys=True)}" if self.kwargs else self.name

    @property
    def keeps_statistics(self) -> bool:
        """True if the name is one of STATISTICS_KEEPERS."""
        return self.name.rpartition(":")[2] in STATISTICS_KEEPERS

    def to_plain(self) -> str | dict[str, Any]:
        """Returns the name or, with arguments, {name: arguments}."""
        return {self.name: dict(self.kwargs)} if self.kwargs else self.name

    @classmethod
    def from_plain(cls, value: object) -> "Wrapper":
        """Inverse of `to_plain`. Raises ValueError with the reason."""
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
    """Parses a setting with wrappers in order of application: names separated by commas, or a JSON list of `to_plain`.

    Raises ValueError with the reason.
    """
    if not text.strip().startswith("["):
        return tuple(Wrapper.from_plain(name.strip()) for name in text.split(",")) if text.strip() else ()
    return _wrappers(peer_json.load(text))


def format_wrappers(wrappers: Sequence[Wrapper]) -> str:
    """Inverse of `parse_wrappers`: names separated by commas; JSON if a wrapper has arguments or there is none."""
    if not wrappers or any(wrapper.kwargs for wrapper in wrappers):
        return json.dumps([wrapper.to_plain() for wrapper in wrappers], sort_keys=True)
    return ",".join(wrapper.name for wrapper in wrappers)


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvConfig:
    preset: str
    """The Atari preset, or "none"; never "auto"."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment or overrides of the preset, as JSON values."""
    wrappers: tuple[Wrapper, ...] = ()
    """Wrappers of each environment, the innermost first."""
    time_limit: int = 0
    """Steps after which an episode is truncated; 0: the environment's own limit."""

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
        """Returns the form for JSON and checkpoints; wrappers and time limit are included only if set."""
        plain: dict[str, Any] = {"kwargs": dict(self.kwargs), "preset": self.preset}
        if self.time_limit:
            plain["time_limit"] = self.time_limit
        if self.wrappers:
            plain["wrappers"] = [wrapper.to_plain() for wrapper in self.wrappers]
        return plain

    def to_json(self) -> str:
        """Returns canonical JSON: equal configurations give equal text. Raises ValueError if arguments are not JSON."""
        return peer_json.dump(self.to_plain())

    @classmethod
    def from_plain(cls, value: object) -> "EnvConfig":
        """Inverse of `to_plain`; unknown keys of newer versions are ignored. Raises ValueError with the reason."""
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
        """Parses JSON from another process. Raises ValueError with the reason."""
        return cls.from_plain(peer_json.load(text))


def _wrappers(entries: object) -> tuple[Wrapper, ...]:
    if not isinstance(entries, list):
        raise ValueError(f"wrappers are {entries!r}, not a list")
    return tuple(map(Wrapper.from_plain, entries))
