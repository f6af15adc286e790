"""Violation of a rule by a peer, with the place in its message."""

from dataclasses import dataclass

from kubebeast_conformance.rules import BY_ID


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a message."""

    path: str
    """Path of the field, e.g. "observations.leaves[1]"; "" for the whole message."""
    element: int | None = None
    """Index of the element within the bytes of the field; None for all bytes."""
    item_size: int = 1
    """Bytes per element."""

    def __str__(self) -> str:
        return self.path if self.element is None else f"{self.path}[{self.element}]"


class ViolationError(Exception):
    """A violation of a rule. Its text has the form "RULE PLACE: REASON"."""

    def __init__(self, rule: str, place: Place | str, reason: str, message: bytes | None = None) -> None:
        """rule is an id of rules.py; message has the wire bytes, if any."""
        self.rule = BY_ID[rule]
        self.place = Place(place) if isinstance(place, str) else place
        self.reason = reason
        self.message = message
        super().__init__(f"{rule} {self.place}: {reason}" if str(self.place) else f"{rule}: {reason}")


def require(holds: bool, rule: str, place: Place | str, reason: str) -> None:
    """Raises ViolationError unless `holds`."""
    if not holds:
        raise ViolationError(rule, place, reason)
