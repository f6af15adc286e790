"""JSON from peers, and canonical JSON for them."""

import json
import math
from collections.abc import Iterable
from typing import NoReturn

MAX_DEPTH = 32
"""Maximum nesting of objects and arrays, because code that copies and writes them recurses."""


def load(text: str) -> object:
    """Parses JSON. Raises ValueError with the reason, also for numbers that are not finite and for deep nesting."""
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if text.count("{") + text.count("[") > MAX_DEPTH:  # fewer brackets cannot be nested too deeply
        require_flat(value)
    return value


def dump(value: object) -> str:
    """Returns canonical JSON: equal values give equal text. Raises ValueError if the value has no JSON."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def require_flat(value: object) -> None:
    """Raises ValueError if objects and arrays are nested more than MAX_DEPTH times."""
    if _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"nested too deeply: at most {MAX_DEPTH} objects and arrays inside each other")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(number: str) -> float:
    """Parses a number. Raises ValueError if it is too large for a float, which Python would read as infinite."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no finite number")
    return value


def _is_deeper(value: object, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return any(isinstance(parent, dict | list) for parent in level)


def _children(parent: object) -> Iterable[object]:
    if isinstance(parent, dict):
        return parent.values()
    return parent if isinstance(parent, list) else ()


# Once, as making them takes longer than a short text.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
