"""A rule that a peer has broken, and where in its message."""

from dataclasses import dataclass

from kubebeast_conformance.rules import BY_ID


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a message."""

    path: str
    """Of the field, e.g. "observations.leaves[1]"; "" for the whole message."""
    element: int | None = None
    """Within the bytes of the field; None for all of them."""
    item_size: int = 1
    """Bytes an element."""

    def __str__(self) -> str:
        return self.path if self.element is None else f"{self.path}[{self.element}]"


class ViolationError(Exception):
    """A rule is broken. Its text is "RULE PLACE: what is wrong"."""

    def __init__(self, rule: str, place: Place | str, reason: str, message: bytes | None = None) -> None:
        """rule: of rules.py. message: as it travelled, where there is one to show."""
        self.rule = BY_ID[rule]
        self.place = Place(place) if isinstance(place, str) else place
        self.reason = reason
        self.message = message
        super().__init__(f"{rule} {self.place}: {reason}" if str(self.place) else f"{rule}: {reason}")


def require(holds: bool, rule: str, place: Place | str, reason: str) -> None:
    """ViolationError unless `holds`."""
    if not holds:
        raise ViolationError(rule, place, reason)
