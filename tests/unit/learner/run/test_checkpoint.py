"""Checkpoints survive crashes, full disks and damaged files."""

import errno
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from kubebeast_learner.run import checkpoint
from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_learner.run.checkpoint_file import CheckpointError, load_path
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import StoredFile


def state(step: int, **more: Any) -> dict[str, Any]:
    learner = {"model": {"weight": torch.arange(1000.0) + step}}
    return {"format": checkpoint.FORMAT, "step": step, "env_spec": {}, "config": {}, "learner": learner, **more}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_saved_state_comes_back(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=3)
    path = save(store, state(7, rng=checkpoint.rng_state()))
    found = store.load_newest()
    assert found is not None and found[0] == str(path)
    assert found[1]["step"] == 7
    torch.testing.assert_close(found[1]["learner"]["model"]["weight"], torch.arange(1000.0) + 7)


def save(store: CheckpointStore, content: dict[str, Any]) -> Path:
    """Saves a state and returns the path of its file."""
    return Path(store.save(content).place)


def steps(store: CheckpointStore) -> list[int | None]:
    return [saved.step for saved in store.checkpoints()]


def test_newest_is_the_highest_step_and_old_ones_go(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=2)
    for step in (9, 20, 100):
        store.save(state(step))
    assert steps(store) == [100, 20]


def test_a_checkpoint_of_a_higher_step_stays_when_an_older_one_is_continued(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=2)
    for step in (200, 300, 10, 20, 30):
        store.save(state(step))
    assert steps(store) == [300, 200, 30, 20]


class MemoryStorage:
    """Files that are lost with the process."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def place(self, name: str) -> str:
        return f"memory:{name}"

    def files(self) -> list[StoredFile]:
        return [StoredFile(name, len(content), 0, str(id(content))) for name, content in self.contents.items()]

    def open(self, name: str) -> io.BufferedIOBase:
        if name not in self.contents:
            raise FileNotFoundError(name)
        return io.BytesIO(self.contents[name])

    @contextmanager
    def create(self, name: str) -> Iterator[io.FileIO]:
        with tempfile.TemporaryFile(buffering=0) as file:
            assert isinstance(file, io.FileIO)
            yield file
            file.seek(0)
            self.contents[name] = file.readall()

    def delete(self, name: str) -> None:
        self.contents.pop(name, None)

    def delete_unfinished(self, is_own: Callable[[str], bool]) -> None:
        pass


def test_checkpoints_are_kept_in_any_storage() -> None:
    storage = MemoryStorage()
    store = CheckpointStore(storage, keep=2)
    saved = [store.save(state(step)) for step in (1, 2, 3)]
    assert saved[-1].place == "memory:checkpoint-000000000003.pt" and steps(store) == [3, 2]
    storage.contents["checkpoint-000000000003.pt"] = b""
    found = store.load_newest()
    assert found is not None and (found[0], found[1]["step"]) == ("memory:checkpoint-000000000002.pt", 2)
    store.save(state(4))
    assert sorted(storage.contents) == [*(f"checkpoint-{step:012d}.pt" for step in (2, 4)), "weights.safetensors"]


def test_empty_and_missing_folders_hold_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointStore(LocalStorage(tmp_path), keep=1).load_newest() is None
    assert CheckpointStore(LocalStorage(tmp_path / "missing"), keep=1).load_newest() is None


def test_crash_before_the_rename_leaves_the_older_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=3)
    store.save(state(1))

    def crash(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        store.save(state(2))
    found = store.load_newest()
    assert found is not None and found[1]["step"] == 1
    assert names(tmp_path) == ["checkpoint-000000000001.pt", "weights.safetensors"]


def test_what_a_killed_process_was_writing_is_never_read_and_goes_with_the_next_save(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=3)
    path = save(store, state(1))
    for unfinished in ("checkpoint-000000000002.pt.tmp", "weights.safetensors.tmp"):
        (tmp_path / unfinished).write_bytes(path.read_bytes()[:100])
    found = store.load_newest()
    assert found is not None and found[1]["step"] == 1
    store.save(state(3))
    assert names(tmp_path) == ["checkpoint-000000000001.pt", "checkpoint-000000000003.pt", "weights.safetensors"]


def test_data_is_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def noted(name: str, function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            order.append(name)
            function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(os, "replace", noted("replace", os.replace))
    CheckpointStore(LocalStorage(tmp_path), keep=3).save(state(1))
    assert order == ["fsync", "replace", "fsync"] * 2  # the checkpoint, then the weights


def test_full_disk_is_an_error_that_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    store.save(state(1))

    def disk_full(value: object, file: Any) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", disk_full)
    with pytest.raises(OSError, match="No space left"):
        store.save(state(2))
    assert names(tmp_path) == ["checkpoint-000000000001.pt", "weights.safetensors"]


def test_a_disk_that_fills_up_after_the_checkpoint_keeps_the_older_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    store.save(state(1))
    replace = os.replace

    def disk_full(source: Path, target: Path) -> None:
        if target.name == "weights.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", disk_full)
    store.save(state(2))
    assert names(tmp_path) == ["checkpoint-000000000002.pt", "weights.safetensors"]
    assert load_path(tmp_path / "weights.safetensors")["step"] == 1
    assert "weights.safetensors not written" in caplog.text and "No space left" in caplog.text


def test_weights_are_the_newest_and_say_what_they_are_for(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=2)
    config = {"model": "mlp", "hidden_sizes": [8], "env": "CartPole-v1", "preset": "none", "savedir": "/secret"}
    for step in (1, 2):
        store.save(state(step, env_spec={"env_id": "CartPole-v1"}, config=config))
    path = tmp_path / "weights.safetensors"
    loaded = load_path(path)
    assert loaded["step"] == 2 and loaded["env_spec"] == {"env_id": "CartPole-v1"}
    assert loaded["config"] == {name: value for name, value in config.items() if name != "savedir"}
    torch.testing.assert_close(loaded["learner"]["model"]["weight"], torch.arange(1000.0) + 2)
    assert b"/secret" not in path.read_bytes()


def test_weights_that_share_memory_are_written_each(tmp_path: Path) -> None:
    weight = torch.arange(6.0).reshape(2, 3)
    learner = {"model": {"a": weight, "b": weight, "c": weight.T}}
    CheckpointStore(LocalStorage(tmp_path), keep=1).save(state(1) | {"learner": learner})
    model = load_path(tmp_path / "weights.safetensors")["learner"]["model"]
    assert model["a"].equal(weight) and model["b"].equal(weight) and model["c"].equal(weight.T)


@pytest.mark.parametrize("damage", [lambda content: content[:-10], lambda content: b"", lambda content: b"{" * 100])
def test_damaged_weights_are_an_error_that_names_them(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    CheckpointStore(LocalStorage(tmp_path), keep=1).save(state(1))
    path = tmp_path / "weights.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=r"weights.safetensors cannot be read"):
        load_path(path)


def test_weights_of_another_project_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    safetensors.torch.save_file({"weight": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match=r"other.safetensors.*metadata lack env_spec, settings, step"):
        load_path(path)


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "empty"])
def test_damaged_newest_is_passed_over_with_a_warning(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=3)
    store.save(state(1))
    newest = save(store, state(2))
    content = newest.read_bytes()
    newest.write_bytes(
        {"truncated": content[: len(content) // 2], "overwritten": b"\0" * len(content), "empty": b""}[damage]
    )
    with caplog.at_level(logging.WARNING):
        found = store.load_newest()
    assert found is not None and found[1]["step"] == 1
    assert str(newest) in caplog.text


def test_a_damaged_newest_gives_way_to_the_next_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=1)
    store.save(state(1))
    (whole,) = store.checkpoints()
    (tmp_path / "checkpoint-000000000300.pt").write_bytes((tmp_path / whole.file.name).read_bytes()[:100])
    store.load_newest()
    store.save(state(200))
    assert [saved.file.name for saved in store.checkpoints()] == ["checkpoint-000000000200.pt"]


def poisoned(step: int) -> dict[str, Any]:
    return state(step) | {"learner": {"model": {"weight": torch.tensor([1.0, torch.nan])}}}


def test_a_newest_checkpoint_that_is_not_finite_is_gone_back_from_and_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = CheckpointStore(LocalStorage(tmp_path), keep=4)
    for each in (state(1), poisoned(100), poisoned(200), poisoned(300)):
        writer.save(each)
    for step in (2, 3, 4):
        store = CheckpointStore(LocalStorage(tmp_path), keep=2)
        found = store.load_newest()
        assert found is not None and found[1]["step"] == step - 1
        assert caplog.text.count("is not finite: learner.model.weight holds nan; it stays") == 3
        caplog.clear()
        store.save(state(step))
    assert [saved.step for saved in store.checkpoints()] == [300, 200, 100, 4, 3]
    store.save(state(300))
    assert [saved.step for saved in store.checkpoints()] == [300, 200, 100, 4]
    again = CheckpointStore(LocalStorage(tmp_path), keep=2).load_newest()
    assert again is not None and again[1]["step"] == 300


def test_nothing_finite_stops_instead_of_starting_afresh(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=3)
    store.save(poisoned(1))
    with pytest.raises(CheckpointError, match=r"none of the 1 checkpoints .* can be read and is finite"):
        store.load_newest()
    assert names(tmp_path) == ["checkpoint-000000000001.pt", "weights.safetensors"]


def test_flipped_bit_in_the_weights_is_noticed(tmp_path: Path) -> None:
    path = save(CheckpointStore(LocalStorage(tmp_path), keep=3), state(1))
    content = bytearray(path.read_bytes())
    at = content.index((torch.arange(1000.0) + 1).numpy().tobytes())
    content[at + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=str(path)):
        load_path(path)


def test_nothing_readable_stops_instead_of_starting_afresh(tmp_path: Path) -> None:
    store = CheckpointStore(LocalStorage(tmp_path), keep=3)
    save(store, state(1)).write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        store.load_newest()


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-000000000001.pt"
    torch.save(state(1, extra=Path("a class that weights_only refuses")), path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_path(path)


def test_other_files_and_other_formats_are_refused(tmp_path: Path) -> None:
    torch.save({"model": {}}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="not a KubeBeast checkpoint"):
        load_path(tmp_path / "other.pt")
    path = save(CheckpointStore(LocalStorage(tmp_path), keep=1), state(1, format=checkpoint.FORMAT + 1))
    with pytest.raises(CheckpointError, match="format"):
        load_path(path)


def test_state_without_its_environment_is_refused(tmp_path: Path) -> None:
    incomplete = state(1)
    del incomplete["env_spec"]
    with pytest.raises(ValueError, match="env_spec"):
        CheckpointStore(LocalStorage(tmp_path), keep=1).save(incomplete)


def test_random_numbers_go_on_where_they_stopped() -> None:
    before = checkpoint.rng_state()
    expected = torch.rand(3)
    checkpoint.restore_rng_state(before)
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
