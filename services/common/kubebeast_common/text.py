"""Texts from external sources, and output with a limited character set."""

import io
import sys


def printable(text: str, max_chars: int) -> str:
    """Returns the first max_chars characters, unprintable ones (control characters, lone surrogates) as spaces."""
    return "".join(c if c.isprintable() else " " for c in text[:max_chars])


def replace_what_cannot_be_shown() -> None:
    """Makes standard output and error print ? for unencodable characters instead of raising UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="replace")
