"""Options of an episode: the JSON object that a learner chooses for a reset (kubebeast_protos/v1/actor_pool.proto)."""

from collections.abc import Mapping
from typing import Any

from kubebeast_common.spec import peer_json
from kubebeast_common.spec.limits import MAX_OPTIONS_CHARACTERS


def to_text(options: Mapping[str, Any]) -> str:
    """Returns canonical JSON, so that equal options have equal text. Raises ValueError with the reason."""
    if not isinstance(options, Mapping):
        raise ValueError(f"{options!r:.100} is no mapping")
    peer_json.require_flat(dict(options))
    text = peer_json.dump(dict(options))
    _require_text(text)
    return text


def from_text(text: str) -> dict[str, Any]:
    """Parses the text of a peer. Raises ValueError with the reason."""
    _require_text(text)
    value = peer_json.load(text)
    if not isinstance(value, dict):
        raise ValueError(f"{text!r:.100} is no JSON object")
    return value


def _require_text(text: str) -> None:
    """Raises ValueError unless a message may hold the text."""
    if len(text) > MAX_OPTIONS_CHARACTERS:
        raise ValueError(f"{len(text)} characters, at most {MAX_OPTIONS_CHARACTERS}")
    if not (text.isascii() and text.isprintable()):
        raise ValueError("a character that is not printable ASCII")
