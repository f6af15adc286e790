"""Parser of a learner's GET /streams page. Its texts come from env-servers and are not trusted."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from kubebeast_common.spec.limits import MAX_ID_CHARACTERS
from kubebeast_common.text import printable

ReadingT = TypeVar("ReadingT")


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReading:
    """One stream of an env-server, from its learner's side. Times are totals in seconds since it connected."""

    env_server_id: str
    instance_id: str
    env_id: str
    peer: str
    """Transport address."""
    num_envs: int
    phase: str
    """env, inference, parked or starting."""
    connected_s: float
    steps: float
    """Env-steps of all its environments."""
    episodes: float
    env_s: float
    """Time in the environments, with the round trip."""
    action_s: float
    """Time waiting for actions."""
    parked_s: float
    """Time held back by a full rollout queue."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the stream."""
        return self.env_server_id, self.instance_id, self.peer


def parse_streams(text: str) -> tuple[StreamReading, ...]:
    """Parses the streams of a /streams page. Raises ValueError for malformed pages."""
    return parse_list(text, "streams", StreamReading)


def parse_list(text: str, name: str, kind: type[ReadingT]) -> tuple[ReadingT, ...]:
    """Parses the list `name` of a page of the same name into a dataclass of texts, counts and numbers. Raises
    ValueError for malformed pages.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"/{name} is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"/{name} is not JSON: {error}") from error
    items = content.get(name) if isinstance(content, dict) else None
    if not isinstance(items, list):
        raise ValueError(f"/{name} has no list named {name}")
    return tuple(_read(kind, item, f"{name}[{index}]") for index, item in enumerate(items))


def _read(kind: type[ReadingT], item: Any, where: str) -> ReadingT:
    if not isinstance(item, dict):
        raise ValueError(f"{where} is not an object")
    read: dict[Any, Callable[[Any, str], Any]] = {str: _text, int: _count, float: _number}
    values = {
        one.name: read[one.type](item.get(one.name), f"{where}.{one.name}")
        for one in fields(kind)  # type: ignore[arg-type]
    }
    return kind(**values)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} is not a text")
    return printable(value, MAX_ID_CHARACTERS)


def _count(value: Any, where: str) -> int:
    return int(_number(value, where))


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{where} is not a finite number of at least 0")
    return float(value)
