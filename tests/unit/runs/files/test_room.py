"""A run waits for room before it begins."""

import errno
import logging
import os
import resource
import threading
from pathlib import Path

import pytest

from kubebeast_common.volume import FULL
from kubebeast_runs.files import room
from kubebeast_runs.files.room import RoomWait, volume_of


@pytest.fixture
def fallocate(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the list of errors of the next checks for room, in order; an empty list means room."""
    errors: list[int] = []

    def reserve(descriptor: int, offset: int, length: int) -> None:
        if errors:
            raise OSError(errors[0], os.strerror(errors.pop(0)))

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    return errors


@pytest.mark.parametrize("error", sorted(FULL))
def test_the_wait_ends_with_room_and_is_logged_once(
    tmp_path: Path, fallocate: list[int], error: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(room, "POLL_S", 0.001)
    fallocate += [error] * 3
    looks: list[int] = []
    with caplog.at_level(logging.WARNING):
        assert RoomWait(tmp_path, 5_000_000).wait(threading.Event(), lambda: looks.append(1))
    waits, again = caplog.messages
    assert "has no room for a checkpoint of 5.0 MB" in waits and os.strerror(error) in waits
    assert again == f"{tmp_path} has room again"
    assert len(looks) == 4 and list(tmp_path.iterdir()) == []


def test_a_stop_ends_the_wait(tmp_path: Path, fallocate: list[int]) -> None:
    fallocate += [errno.ENOSPC] * 9
    stop = threading.Event()
    stop.set()
    assert not RoomWait(tmp_path, 0).wait(stop, lambda: None)


def test_an_error_that_does_not_pass_is_no_reason_to_wait(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RoomWait(tmp_path / "missing", 0).look()


def test_a_limit_of_the_process_counts_as_a_full_volume(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        assert not RoomWait(tmp_path, 0).look()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert RoomWait(tmp_path, 0).look()


def test_a_volume_has_a_size_and_what_is_free_of_it(tmp_path: Path) -> None:
    volume = volume_of(tmp_path)
    assert volume is not None and 0 <= volume.free_bytes <= volume.size_bytes
    assert volume_of(tmp_path / "missing") is None
