"""A notice, and the interface of its source."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kubebeast_common.text import printable

MAX_BYTES = 64 << 10
"""Maximum size of a response or a file; larger ones are an error. A scheduled event of Azure has half a kilobyte."""
_MAX_CHARACTERS = 200


class Notice(NamedTuple):
    """A notice that the node is about to go."""

    key: str
    """Identity: polls that find the same notice have the same key."""
    text: str
    """Content, printable."""
    deadline: str = ""
    """Time from which the node may be gone, as its source gives it; "" if that is unknown."""

    def __str__(self) -> str:
        return f"{self.text}; not before {self.deadline}" if self.deadline else self.text


class NoticeError(RuntimeError):
    """A failed poll; the message names the place and the reason."""


class NoticeSource(Protocol):
    """A place that is polled for notices. For one thread."""

    def poll(self) -> Sequence[Notice]:
        """Returns the notices that stand now. May block for a few seconds. Raises NoticeError."""


def shown(value: object) -> str:
    """Returns a text from outside, for a notice."""
    return printable(str(value), _MAX_CHARACTERS)
