"""A record is in a file as a whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from kubebeast_common.volume import FULL
from kubebeast_runs.files.append_file import AppendFile
from tests.unit.runs.files.scarce_volume import ScarceVolume


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScarceVolume:
    return ScarceVolume(tmp_path, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> AppendFile:
    return AppendFile(tmp_path / "file")


@pytest.mark.parametrize("error", sorted(FULL))
def test_a_record_that_does_not_fit_leaves_nothing_and_the_next_one_follows_the_last_whole_one(
    file: AppendFile, volume: ScarceVolume, tmp_path: Path, error: int
) -> None:
    volume.error = error
    file.append(b"whole\n")
    volume.free_bytes = 3
    with pytest.raises(OSError, match=os.strerror(error)):
        file.append(b"does not fit\n")
    assert (tmp_path / "file").read_bytes() == b"whole\n"
    volume.free_bytes = 100
    file.append(b"next\n")
    assert (tmp_path / "file").read_bytes() == b"whole\nnext\n"


def test_what_cannot_be_cut_off_at_once_is_before_the_next_record(
    file: AppendFile, volume: ScarceVolume, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    file.append(b"whole\n")
    volume.free_bytes = 3
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(OSError, match="No space left"):
            file.append(b"does not fit\n")
        assert (tmp_path / "file").read_bytes() == b"whole\ndoe"
        volume.free_bytes = 100
        with pytest.raises(OSError, match="Input/output"):
            file.append(b"not yet\n")
    file.append(b"next\n")
    assert (tmp_path / "file").read_bytes() == b"whole\nnext\n"


def test_after_an_error_the_file_is_whichever_has_the_name(
    file: AppendFile, volume: ScarceVolume, tmp_path: Path
) -> None:
    file.append(b"one\n")
    volume.free_bytes = 0
    with pytest.raises(OSError, match="No space left"):
        file.append(b"two\n")
    (tmp_path / "file").rename(tmp_path / "moved")
    (tmp_path / "file").write_bytes(b"another, and longer\n")
    volume.free_bytes = 100
    file.append(b"three\n")
    assert (tmp_path / "file").read_bytes() == b"another, and longer\nthree\n"
    assert (tmp_path / "moved").read_bytes() == b"one\n"


def test_a_file_that_is_none_is_an_error_and_blocks_nobody(file: AppendFile, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        file.append(b"nobody reads\n")
    reader = os.open(tmp_path / "file", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="no regular file"):
        file.append(b"somebody might\n")
    os.close(reader)


def test_an_empty_file_is_told_from_one_that_is_continued(file: AppendFile, tmp_path: Path) -> None:
    assert file.is_empty()
    file.append(b"one\n")
    file.close()
    assert not file.is_empty() and not AppendFile(tmp_path / "file").is_empty()
    file.close()
