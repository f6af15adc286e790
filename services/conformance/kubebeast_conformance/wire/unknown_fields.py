"""Messages with fields of a newer minor version."""

UNKNOWN_FIELD = b"\xba\x3e\x03new"
"""Encoded field 999, which does not exist in the contract."""


def with_unknown_fields(number: int, payload: bytes) -> bytes:
    """Returns an ActRequest or ActResponse with a payload of this field number, and an unknown field in both."""
    payload += UNKNOWN_FIELD
    length, varint = len(payload), bytearray()
    while length >= 0x80:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2, *varint, length]) + payload + UNKNOWN_FIELD
