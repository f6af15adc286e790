"""Pings are distinguished from all other frames of a connection, in pieces of any size."""

import pytest

from kubebeast_conformance.wire.frames import PREFACE, Frame, FrameReader

DATA, PING, SETTINGS = 0, 6, 4
ACK = 1


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags, 0, 0, 0, 1]) + payload


CONNECTION = (
    PREFACE
    + frame(SETTINGS, 0, b"")
    + frame(PING, 0, bytes(8))
    + frame(DATA, 0, frame(PING, 0, bytes(8)) * 3)
    + frame(PING, ACK, bytes(8))
)
FRAMES = [Frame.OTHER, Frame.PING, Frame.OTHER, Frame.ANSWER]


@pytest.mark.parametrize("size", range(1, len(CONNECTION) + 1))
def test_frames_are_told_in_pieces_of_any_size(size: int) -> None:
    reader = FrameReader(with_preface=True)
    pieces = (CONNECTION[at : at + size] for at in range(0, len(CONNECTION), size))
    assert [found for piece in pieces for found in reader.feed(piece)] == FRAMES


def test_who_listens_sends_no_preface() -> None:
    assert [*FrameReader(with_preface=False).feed(CONNECTION[len(PREFACE) :])] == FRAMES
