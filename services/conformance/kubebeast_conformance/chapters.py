"""Form of a rule of the wire contract, and the chapters of the rules."""

from dataclasses import dataclass
from typing import Literal

Side = Literal["env-server", "learner", "both"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A requirement on a peer."""

    id: str
    """A letter of CHAPTERS and a number, which is never reused for another rule."""
    side: Side
    """The side that must keep it."""
    text: str
    unseen: str = ""
    """The part that is not checked: invisible outside the peer, or impossible for the suite to produce."""


CHAPTERS = {
    "C": "Connection",
    "H": "Hello",
    "W": "Welcome",
    "O": "Observations",
    "R": "Rows",
    "A": "Actions",
    "E": "Ends and reconnection",
    "S": "Statuses of the learner",
    "T": "Time",
    "V": "Versions",
}
"""Titles of chapters by the letter of their rules."""
