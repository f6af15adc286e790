"""Texts that come from elsewhere."""


def printable(text: str, max_chars: int) -> str:
    """The text's first characters, each that is not printable (control characters, lone surrogates) as a space."""
    return "".join(c if c.isprintable() else " " for c in text[:max_chars])
