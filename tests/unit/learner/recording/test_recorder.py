"""A recording is in files of one size, never holds up the training, and names what it lacks."""

import logging
import queue
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kubebeast_common.atomic_file import write_atomically
from kubebeast_learner.config import ConfigError
from kubebeast_learner.recording import recorder as module
from kubebeast_learner.recording.folder import continue_recording
from kubebeast_learner.recording.reader import Gap, read_recordings
from kubebeast_learner.recording.recorder import DROPPED, SHARDS, Limits, Recorder
from kubebeast_learner.recording.shard_file import num_bytes, pack
from kubebeast_learner.recording.shards import find_shards
from tests.unit.learner.recording.recorded_batches import random_rollout, record, source_of

ROLLOUT = random_rollout()
TIMEOUT_S = 60
SHARD_BYTES = 4000
"""Size of a shard with one batch of ROLLOUT, at least."""


def updates(folder: Path) -> list[int]:
    return [entry.batch.update for entry in read_recordings(folder)[0].entries]


def first_updates(folder: Path) -> list[int]:
    return [shard.first_update for shard in find_shards(folder)]


def test_a_shard_ends_with_the_batch_that_fills_it(tmp_path: Path) -> None:
    record(tmp_path, [ROLLOUT] * 7, shard_bytes=1)
    assert first_updates(tmp_path) == [0, 1, 2, 3, 4, 5, 6]
    (batch,) = {num_bytes(pack(entry.batch, entry.arrays())[1]) for entry in read_recordings(tmp_path)[0].entries}
    record(tmp_path / "larger", [ROLLOUT] * 7, shard_bytes=2 * batch)
    assert first_updates(tmp_path / "larger") == [0, 2, 4, 6]
    assert updates(tmp_path) == updates(tmp_path / "larger") == list(range(7))


def test_a_shard_ends_at_a_checkpoint(tmp_path: Path) -> None:
    failures: dict[str, int] = {}
    with Recorder(tmp_path, source_of(), update=0, limits=Limits(1 << 30, 0), failures=failures) as recorder:
        recorder.end_shard()  # of no batch, which makes no file
        for update in range(4):
            recorder.add(ROLLOUT, update=update, step=0)
            if update == 1:
                recorder.end_shard()
    assert first_updates(tmp_path) == [0, 2]
    assert sum(failures.values()) == 0


def test_the_oldest_shards_are_deleted_before_the_limit_is_exceeded(tmp_path: Path) -> None:
    record(tmp_path / "all", [ROLLOUT] * 9, shard_bytes=1)
    size = max(shard.path.stat().st_size for shard in find_shards(tmp_path / "all"))
    record(tmp_path / "some", [ROLLOUT] * 9, shard_bytes=1, max_bytes=3 * size)

    assert first_updates(tmp_path / "some") == [6, 7, 8]
    assert read_recordings(tmp_path / "some")[0].gaps() == [Gap(0, 6)]


def test_each_rank_deletes_its_own_shards(tmp_path: Path) -> None:
    for rank in range(2):
        source = source_of(rank=rank, num_ranks=2)
        record(tmp_path, [ROLLOUT] * 4, source, shard_bytes=1, max_bytes=2 * SHARD_BYTES if rank else 0)
    first, second = read_recordings(tmp_path)

    assert [entry.batch.update for entry in first.entries] == [0, 1, 2, 3]
    assert [entry.batch.update for entry in second.entries][-1] == 3 and len(second.entries) < 4
    assert (tmp_path / "unrolls-0000000003-rank1.safetensors").exists()


def test_batches_that_the_volume_is_too_slow_for_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: queue.SimpleQueue[str] = queue.SimpleQueue()
    may_write = threading.Event()

    def write_slowly(path: Path, content: bytes) -> None:
        begun.put(path.name)
        assert may_write.wait(TIMEOUT_S)
        write_atomically(path, content)

    monkeypatch.setattr(module, "write_atomically", write_slowly)
    failures: dict[str, int] = {}
    limits = Limits(shard_bytes=1, max_bytes=0, max_waiting=2)
    with (
        caplog.at_level(logging.WARNING),
        Recorder(tmp_path, source_of(), update=0, limits=limits, failures=failures) as recorder,
    ):
        recorder.add(ROLLOUT, update=0, step=0)
        recorder.end_shard()
        assert begun.get(timeout=TIMEOUT_S) == "unrolls-0000000000.safetensors"
        for update in range(1, 6):  # two of them find a place
            recorder.add(ROLLOUT, update=update, step=0)
        assert failures == {SHARDS: 0, DROPPED: 3}
        may_write.set()
        assert begun.get(timeout=TIMEOUT_S) == "unrolls-0000000001.safetensors"
        recorder.add(ROLLOUT, update=6, step=0)

    assert updates(tmp_path) == [0, 1, 2, 6]
    (recording,) = read_recordings(tmp_path)
    assert [entry.batch.num_missing for entry in recording.entries] == [0, 0, 0, 3]
    assert recording.gaps() == [Gap(3, 3)]
    assert len([line for line in caplog.messages if "slower than the training" in line]) == 1


def test_shards_that_cannot_be_written_are_counted_and_leave_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def write_some(path: Path, content: bytes) -> None:
        if path.name in ("unrolls-0000000001.safetensors", "unrolls-0000000002.safetensors"):
            raise OSError(28, "No space left on device")
        write_atomically(path, content)

    monkeypatch.setattr(module, "write_atomically", write_some)
    with caplog.at_level(logging.WARNING):
        failures = record(tmp_path, [ROLLOUT] * 5, shard_bytes=1)

    assert failures == {SHARDS: 2, DROPPED: 0}
    assert updates(tmp_path) == [0, 3, 4]
    assert read_recordings(tmp_path)[0].gaps() == [Gap(1, 2)]
    assert [line for line in caplog.messages if "No space left" in line or "written again" in line] == caplog.messages
    assert len(caplog.messages) == 2


def test_a_skipped_update_is_no_gap(tmp_path: Path) -> None:
    failures: dict[str, int] = {}
    with Recorder(tmp_path, source_of(), update=0, limits=Limits(1, 0, 100), failures=failures) as recorder:
        for update in (0, 1, 1, 1, 2):
            recorder.add(ROLLOUT, update=update, step=0)
    (recording,) = read_recordings(tmp_path)

    assert updates(tmp_path) == [0, 1, 1, 1, 2]
    assert recording.gaps() == []
    assert recording.num_updates == 3


@pytest.mark.parametrize("shard_bytes", [1, SHARD_BYTES])
def test_a_resumed_run_replaces_the_batches_from_after_its_checkpoint(shard_bytes: int, tmp_path: Path) -> None:
    record(tmp_path, [ROLLOUT] * 6, shard_bytes=shard_bytes)
    (tmp_path / "unrolls-0000000006.safetensors.tmp").write_bytes(b"half")
    before = first_updates(tmp_path)
    continue_recording(tmp_path, source_of(), 4, is_new_run=False)
    remaining = first_updates(tmp_path)
    record(tmp_path, [random_rollout(seed=1)] * 4, first=4)
    (recording,) = read_recordings(tmp_path)

    assert remaining == [first for first in before if first < 4] != before
    assert updates(tmp_path) == list(range(8))
    assert [entry.began_at for entry in recording.entries] == [0, 0, 0, 0, 4, 4, 4, 4]
    assert not list(tmp_path.glob("*.tmp"))


def test_the_recording_of_another_run_is_kept(tmp_path: Path) -> None:
    record(tmp_path, [ROLLOUT])
    with pytest.raises(ConfigError, match=r"record = '.*': it has another recording: run 'run' against 'other'"):
        continue_recording(tmp_path, source_of(run="other"), 0, is_new_run=False)
    with pytest.raises(ConfigError, match="it has a recording already; name an empty folder"):
        continue_recording(tmp_path, source_of(), 0, is_new_run=True)
    with pytest.raises(ConfigError, match="unroll_length 5 against 6"):
        continue_recording(tmp_path, replace(source_of(), unroll_length=6), 1, is_new_run=False)
    assert updates(tmp_path) == [0]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"record = '.*file/below': .*Not a directory"):
        continue_recording(tmp_path / "file" / "below", source_of(), 0, is_new_run=True)


def test_an_error_of_the_writer_costs_the_recording_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "pack", lambda *_: 1 / 0)
    failures: dict[str, int] = {}
    limits = Limits(shard_bytes=1, max_bytes=0, max_waiting=1)
    with Recorder(tmp_path, source_of(), update=0, limits=limits, failures=failures) as recorder:
        for update in range(3):
            recorder.add(ROLLOUT, update=update, step=0)

    assert failures[DROPPED] >= 1
    assert "the recording ends before the run" in caplog.text
