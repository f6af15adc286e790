"""Reads a learner's GET /streams. Its texts come from env-servers, which may send anything."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubebeast_envserver.codec import printable

MAX_TEXT = 253
"""Characters of a text that are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReading:
    """One stream of an env-server, as its learner sees it. Times are totals since it connected, in seconds."""

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
    """In the environments, and on the way there and back."""
    action_s: float
    """Waiting for actions."""
    parked_s: float
    """Held back by a full rollout queue."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Tells streams apart."""
        return self.env_server_id, self.instance_id, self.peer


def parse_streams(text: str) -> tuple[StreamReading, ...]:
    """The streams of the answer's JSON. ValueError names what is wrong with it."""
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("/streams is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"/streams is not JSON: {error}") from error
    streams = content.get("streams") if isinstance(content, dict) else None
    if not isinstance(streams, list):
        raise ValueError("/streams has no list named streams")
    return tuple(_stream(stream, f"streams[{index}]") for index, stream in enumerate(streams))


def _stream(stream: Any, where: str) -> StreamReading:
    if not isinstance(stream, dict):
        raise ValueError(f"{where} is not an object")

    def text(name: str) -> str:
        return _text(stream, name, where)

    def number(name: str) -> float:
        return _number(stream, name, where)

    return StreamReading(
        env_server_id=text("env_server_id"),
        instance_id=text("instance_id"),
        env_id=text("env_id"),
        peer=text("peer"),
        num_envs=int(number("num_envs")),
        phase=text("phase"),
        connected_s=number("connected_s"),
        steps=number("steps"),
        episodes=number("episodes"),
        env_s=number("env_s"),
        action_s=number("action_s"),
        parked_s=number("parked_s"),
    )


def _text(stream: Mapping[str, Any], name: str, where: str) -> str:
    value = stream.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{where}.{name} is not a text")
    return printable(value, MAX_TEXT)


def _number(stream: Mapping[str, Any], name: str, where: str) -> float:
    value = stream.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{where}.{name} is not a finite number of at least 0")
    return float(value)
