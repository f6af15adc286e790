"""Checkpoints survive crashes, full disks and damaged files."""

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner import checkpoint
from kubebeast_learner.checkpoint import CheckpointError, CheckpointStore


def state(step: int, **more: Any) -> dict[str, Any]:
    learner = {"model": {"weight": torch.arange(1000.0) + step}}
    return {"format": checkpoint.FORMAT, "step": step, "env_spec": {}, "config": {}, "learner": learner, **more}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_saved_state_comes_back(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    path = store.save(state(7, rng=checkpoint.rng_state()))
    found = store.load_newest()
    assert found is not None and found[0] == path
    assert found[1]["step"] == 7
    torch.testing.assert_close(found[1]["learner"]["model"]["weight"], torch.arange(1000.0) + 7)


def test_newest_is_the_highest_step_and_old_ones_go(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    for step in (9, 100, 20):
        store.save(state(step))
    assert [path.name for path in store.paths()] == ["checkpoint-000000000100.pt", "checkpoint-000000000020.pt"]


def test_empty_and_missing_folders_hold_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path, keep=1).load_newest() is None
    assert CheckpointStore(tmp_path / "missing", keep=1).load_newest() is None


def test_crash_before_the_rename_leaves_the_older_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    store.save(state(1))

    def crash(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        store.save(state(2))
    found = store.load_newest()
    assert found is not None and found[1]["step"] == 1
    assert names(tmp_path) == ["checkpoint-000000000001.pt"]


def test_process_killed_while_writing_leaves_a_file_that_is_never_read(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    path = store.save(state(1))
    (tmp_path / "checkpoint-000000000002.pt.tmp").write_bytes(path.read_bytes()[:100])
    found = store.load_newest()
    assert found is not None and found[1]["step"] == 1


def test_data_is_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def noted(name: str, function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            order.append(name)
            function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(os, "replace", noted("replace", os.replace))
    CheckpointStore(tmp_path, keep=3).save(state(1))
    assert order == ["fsync", "replace", "fsync"]


def test_full_disk_is_an_error_that_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(tmp_path, keep=1)
    store.save(state(1))

    def disk_full(value: object, file: Any) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", disk_full)
    with pytest.raises(OSError, match="No space left"):
        store.save(state(2))
    assert names(tmp_path) == ["checkpoint-000000000001.pt"]


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "empty"])
def test_damaged_newest_is_passed_over_with_a_warning(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    store.save(state(1))
    newest = store.save(state(2))
    content = newest.read_bytes()
    newest.write_bytes(
        {"truncated": content[: len(content) // 2], "overwritten": b"\0" * len(content), "empty": b""}[damage]
    )
    with caplog.at_level(logging.WARNING):
        found = store.load_newest()
    assert found is not None and found[1]["step"] == 1
    assert str(newest) in caplog.text


def test_flipped_bit_in_the_weights_is_noticed(tmp_path: Path) -> None:
    path = CheckpointStore(tmp_path, keep=3).save(state(1))
    content = bytearray(path.read_bytes())
    at = content.index((torch.arange(1000.0) + 1).numpy().tobytes())
    content[at + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=str(path)):
        checkpoint.load(path)


def test_nothing_readable_stops_instead_of_starting_afresh(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    store.save(state(1)).write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        store.load_newest()


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-000000000001.pt"
    torch.save(state(1, extra=Path("a class that weights_only refuses")), path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(path)


def test_other_files_and_other_formats_are_refused(tmp_path: Path) -> None:
    torch.save({"model": {}}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="not a KubeBeast checkpoint"):
        checkpoint.load(tmp_path / "other.pt")
    path = CheckpointStore(tmp_path, keep=1).save(state(1, format=checkpoint.FORMAT + 1))
    with pytest.raises(CheckpointError, match="format"):
        checkpoint.load(path)


def test_state_without_its_environment_is_refused(tmp_path: Path) -> None:
    incomplete = state(1)
    del incomplete["env_spec"]
    with pytest.raises(ValueError, match="env_spec"):
        CheckpointStore(tmp_path, keep=1).save(incomplete)


def test_random_numbers_go_on_where_they_stopped() -> None:
    before = checkpoint.rng_state()
    expected = torch.rand(3)
    checkpoint.restore_rng_state(before)
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
