"""The bearer token (RFC 6750): sent by whoever dials, checked by whoever listens.

The file holds one token a line. The first one is sent and any one is accepted, so that both sides can change it without
an outage. It is read again for each handshake. No message holds a token's text.
"""

import hmac
import re
from collections.abc import Iterable
from pathlib import Path

_VISIBLE = re.compile(rb"[!-~]+")

MISSING = "the bearer token is missing"
WRONG = "the bearer token is wrong"


class TokenFileError(Exception):
    """The file cannot be used."""


def authorization(path: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a call that carries the token; empty where path is "". Raises TokenFileError."""
    return (("authorization", f"Bearer {_read(path)[0].decode('ascii')}"),) if path else ()


def refusal(path: str, metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    """Why a call with this metadata is UNAUTHENTICATED; None where it is not. Raises TokenFileError."""
    if not path:
        return None
    tokens = _read(path)
    header = dict(metadata).get("authorization", "")
    scheme, _, offered = (header if isinstance(header, bytes) else header.encode()).partition(b" ")
    if scheme.lower() != b"bearer" or not offered:
        return MISSING
    # Every token is compared, in constant time: how long it takes tells nothing about them.
    matches = [hmac.compare_digest(offered, token) for token in tokens]
    return None if any(matches) else WRONG


def _read(path: str) -> list[bytes]:
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise TokenFileError(f"token_file = {path!r}: {error.strerror}") from error
    tokens = [token for token in map(bytes.strip, lines) if token]
    if not tokens:
        raise TokenFileError(f"token_file = {path!r}: holds no token")
    if not all(map(_VISIBLE.fullmatch, tokens)):
        raise TokenFileError(f"token_file = {path!r}: a token may hold visible ASCII characters only")
    return tokens
