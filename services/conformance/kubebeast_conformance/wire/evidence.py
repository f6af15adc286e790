"""Readable dump of the bytes that break a rule."""

from google.protobuf.message import Message

from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.wire.locate import Span, locate

_PER_LINE = 16
_MAX_LINES = 4


def evidence(violation: ViolationError, message: type[Message]) -> str:
    """Returns a dump of the offending bytes, in brackets, and their context; "" if the violation has no message."""
    data, place = violation.message, violation.place
    if data is None:
        return ""
    span = locate(data, message, place.path) if place.path else None
    span = span or Span(0, len(data))
    if place.element is not None:
        start = span.start + place.element * place.item_size
        if start + place.item_size <= span.end:
            span = Span(start, start + place.item_size)
    where = f"{place} of a message" if str(place) else "a message"
    return "\n".join([f"bytes {span.start} to {span.end - 1} of {len(data)}, {where}:", *_dump(data, span)])


def _dump(data: bytes, span: Span) -> list[str]:
    first = span.start // _PER_LINE * _PER_LINE
    last = min(max(span.end, first + 1), first + _MAX_LINES * _PER_LINE)
    lines = [_line(data, at, span) for at in range(first, last, _PER_LINE)]
    return [*lines, "..."] if span.end > last else lines


def _line(data: bytes, at: int, span: Span) -> str:
    part = data[at : at + _PER_LINE]
    cells = "".join(
        f"{'[' if at + i == span.start else ' '}{byte:02x}{']' if at + i == span.end - 1 else ''}"
        for i, byte in enumerate(part)
    )
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
    return f"{at:08x} {cells.replace('] ', ']'):<{3 * _PER_LINE + 1}} |{text}|"
