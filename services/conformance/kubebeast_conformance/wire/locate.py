"""Location of a field in a message's bytes (https://protobuf.dev/programming-guides/encoding/)."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.message import Message

_STEP = re.compile(r"(\w+)(?:\[(\d+)\])?")


class Span(NamedTuple):
    """A range of bytes; `end` is exclusive."""

    start: int
    end: int


def locate(data: bytes, message: type[Message], path: str) -> Span | None:
    """Returns the span of the value of a field, "name.name[index]"; None if it is not in the bytes."""
    span = Span(0, len(data))
    descriptor: Any = message.DESCRIPTOR
    for name, index in _STEP.findall(path):
        field = None if descriptor is None else descriptor.fields_by_name.get(name)
        if field is None:
            return None
        values = [value for number, value in fields(data, span) if number == field.number]
        place = int(index or 0)
        if place >= len(values):
            return values[-1] if values else None  # packed, or fewer than expected
        span, descriptor = values[place], field.message_type
    return span


def fields(data: bytes, span: Span) -> Iterator[tuple[int, Span]]:
    """Yields number and value of each field of a message up to the first invalid or truncated field."""
    at = span.start
    while at < span.end:
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        start = at
        match wire_type:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                length, start = _varint(data, at)
                at = start + length
            case 5:
                at += 4
            case _:
                return
        if at > span.end:
            return
        yield number, Span(start, at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns the value of a varint and the index after it, which is beyond the end if the varint is incomplete."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    return value, len(data) + 1
