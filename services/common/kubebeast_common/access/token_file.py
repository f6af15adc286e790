"""The bearer token (RFC 6750), sent by the dialing side and checked by the listening side.

The file holds one token per line. The first is sent and all are accepted, so that both sides can rotate tokens without
an outage. The file is read again for each handshake. Error messages never contain tokens.
"""

import hmac
import re
from collections.abc import Iterable
from pathlib import Path

_VISIBLE = re.compile(rb"[!-~]+")

MISSING = "the bearer token is missing"
WRONG = "the bearer token is wrong"


class TokenFileError(Exception):
    """An unusable token file."""


def authorization(path: str) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a call with the token; empty if path is "". Raises TokenFileError."""
    return (("authorization", f"Bearer {_read(path)[0].decode('ascii')}"),) if path else ()


def refusal(path: str, metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    """Returns the reason for which a call with this metadata is UNAUTHENTICATED, or None. Raises TokenFileError."""
    if not path:
        return None
    tokens = _read(path)
    header = dict(metadata).get("authorization", "")
    scheme, _, offered = (header if isinstance(header, bytes) else header.encode()).partition(b" ")
    if scheme.lower() != b"bearer" or not offered:
        return MISSING
    # All tokens are compared in constant time, so the duration reveals nothing about them.
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
