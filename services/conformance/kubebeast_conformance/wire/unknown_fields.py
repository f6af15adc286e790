"""Messages as a peer of a newer minor version would send them."""

UNKNOWN_FIELD = b"\xba\x3e\x03new"
"""Field 999, which no message has."""


def with_unknown_fields(number: int, payload: bytes) -> bytes:
    """An ActRequest or ActResponse whose payload has that number, with a field more in both."""
    payload += UNKNOWN_FIELD
    length, varint = len(payload), bytearray()
    while length >= 0x80:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2, *varint, length]) + payload + UNKNOWN_FIELD
