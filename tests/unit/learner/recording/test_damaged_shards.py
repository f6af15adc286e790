"""A shard that is damaged, of another recording or made to harm is refused with its name and the reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.recording.arrays import Sizes
from kubebeast_learner.recording.reader import read_recordings
from kubebeast_learner.recording.shard_file import LEAST_BYTES, pack
from kubebeast_learner.recording.shards import RecordingError
from tests.unit.learner.recording.recorded_batches import CHOICE, SCREEN, random_rollout, record, source_of

SPEC = EnvSpec("Frames-v0", (SCREEN, Leaf("speed", "float32", (40,))), (CHOICE,))
NAME = "unrolls-0000000000.safetensors"
Arrays = dict[str, np.ndarray[Any, Any]]


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    record(tmp_path, [random_rollout(SPEC, seed=seed) for seed in range(3)], source_of(SPEC))
    return tmp_path / NAME


def read_all(folder: Path, sizes: Sizes | None = None) -> int:
    """Reads every batch and returns their number."""
    recordings = read_recordings(folder)
    distribution = random_rollout(SPEC).distribution
    return sum(
        recording.rollout(entry, distribution, sizes).batch_size > 0
        for recording in recordings
        for entry in recording.entries
    )


def refused(folder: Path, sizes: Sizes | None = None) -> str:
    with pytest.raises(RecordingError) as caught:
        read_all(folder, sizes)
    return str(caught.value)


def rewrite_metadata(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the values of the metadata."""
    with safetensors.safe_open(path, framework="np") as file:
        values = {name: json.loads(text) for name, text in (file.metadata() or {}).items()}
    change(values)
    metadata = {name: json.dumps(value) for name, value in values.items()}
    path.write_bytes(safetensors.numpy.save(safetensors.numpy.load_file(path), metadata))


def rewrite_first_batch(path: Path, change: Callable[[Arrays], object]) -> None:
    """Changes the arrays of the first batch, with a right checksum, as a stranger could."""
    (recording,) = read_recordings(path.parent)
    entry = recording.entries[0]
    arrays: Arrays = {name: array.copy() for name, array in entry.arrays().items()}
    change(arrays)
    batch, stored = pack(entry.batch, arrays)
    others = {name: array for name, array in safetensors.numpy.load_file(path).items() if not name.startswith("0.")}
    with safetensors.safe_open(path, framework="np") as file:
        metadata = dict(file.metadata() or {})
    batches = json.loads(metadata["batches"])
    batches[0] |= {"compressed": batch.compressed, "crc32": batch.crc32}
    metadata["batches"] = json.dumps(batches)
    path.write_bytes(safetensors.numpy.save({**others, **{f"0.{n}": a for n, a in stored.items()}}, metadata))


@pytest.mark.parametrize("num_bytes", [0, 4, 8, 100, 2000, -1])
def test_a_truncated_shard_is_named(shard: Path, num_bytes: int) -> None:
    shard.write_bytes(shard.read_bytes()[:num_bytes])
    assert refused(shard.parent).startswith(str(shard))


def test_no_flipped_byte_of_the_arrays_goes_unnoticed(shard: Path) -> None:
    content = shard.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    for place in range(header, len(content), 97):
        damaged = bytearray(content)
        damaged[place] ^= 0x40
        shard.write_bytes(damaged)
        assert "the checksum of the batch of update" in refused(shard.parent)


def test_flipped_bytes_of_the_header_end_with_the_name_of_the_file_or_change_nothing(shard: Path) -> None:
    content = shard.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    messages = []
    for place in range(0, header, 7):
        damaged = bytearray(content)
        damaged[place] ^= 0x11
        shard.write_bytes(damaged)
        try:
            assert read_all(shard.parent) == 3
        except RecordingError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all(message.startswith(str(shard)) for message in messages)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "other format": (lambda values: values.update(format="other"), "it holds no unrolls of KubeBeast"),
    "newer version": (lambda values: values.update(version=2), "it has format version 2, this program reads 1"),
    "no environment": (lambda values: values.pop("env_spec"), "there is no env_spec"),
    "environment of text": (lambda values: values.update(env_spec="x"), "env_spec: 'x' is no mapping"),
    "no batch": (lambda values: values.update(batches=[]), "it holds no batch"),
    "batch of text": (lambda values: values.update(batches=["x"]), "'x' is no mapping"),
    "negative size": (lambda values: values.update(batch_size=-3), "batch_size: -3 is no count"),
    "size of zero": (lambda values: values.update(unroll_length=0), "unroll_length: must be at least 1"),
    "infinite size": (lambda values: values.update(batch_size=float("inf")), "batch_size: inf is no count"),
    "other length": (lambda values: values.update(unroll_length=9), "expected float32 [10, 3]"),
    "number of versions": (lambda values: values["batches"][0].update(policy_versions=[1]), "has 1 values, not 3"),
    "unknown layout": (
        lambda values: values["batches"][0].update(layouts=["x", "rows"]),
        "'x' is none of rows, frames",
    ),
    "wrong layout": (lambda values: values["batches"][0].update(layouts=["rows", "rows"]), "has the layout rows"),
    "all replayed": (lambda values: values["batches"][0].update(num_replayed=3), "num_replayed: 3 is no count up to 2"),
    "other begin": (lambda values: values["batches"].pop(0), "it begins at update 1, not at that of its name"),
    "order": (lambda values: values["batches"].reverse(), "it begins at update 2, not at that of its name"),
    "updates backwards": (lambda values: values["batches"][1].update(update=5), "not in the order of updates"),
    "size of an array": (
        lambda values: values["batches"][0]["compressed"].update({"observation.0": ["uint8", [2**40, 3, 6, 7]]}),
        "too few for uint8",
    ),
    "smaller array": (
        lambda values: values["batches"][0]["compressed"].update({"observation.0": ["uint8", [1, 3, 6, 7]]}),
        "observation.0.lz4",
    ),
    "dtype of an array": (
        lambda values: values["batches"][0]["compressed"].update({"observation.0": ["object", [9]]}),
        "observation.0.lz4 is no compressed array",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_metadata_of_strangers_are_checked(shard: Path, change: str) -> None:
    rewrite_metadata(shard, CHANGES[change][0])
    message = refused(shard.parent)
    assert message.startswith(str(shard)) and CHANGES[change][1] in message


def test_metadata_that_are_no_json_are_refused(shard: Path) -> None:
    deep = "[" * 100_000
    for text in ("{", deep):
        arrays = safetensors.numpy.load_file(shard)
        shard.write_bytes(safetensors.numpy.save(arrays, {"format": text}))
        assert "it holds no unrolls of KubeBeast" in refused(shard.parent)
        record(shard.parent, [random_rollout(SPEC)], source_of(SPEC))


def set_value(name: str, value: object) -> Callable[[Arrays], object]:
    return lambda arrays: arrays[name].reshape(-1).__setitem__(0, value)


VALUES: dict[str, tuple[Callable[[Arrays], object], str]] = {
    "action": (set_value("action", 3), "action has values outside 0 to 2"),
    "last action": (set_value("last_action", -1), "last_action has values outside 0 to 2"),
    "frame": (set_value("frame_index.0", 12), "frame_index.0 has values outside 0 to 11"),
    "negative frame": (set_value("frame_index.0", -1), "frame_index.0 has values outside"),
    "truth": (lambda arrays: arrays["valid"].view(np.uint8).fill(7), "valid has values outside 0 to 1"),
    "missing": (lambda arrays: arrays.pop("rewards"), "there is no rewards"),
    "unknown": (lambda arrays: arrays.update(code=np.zeros(1)), "code is not what this model and environment have"),
    "dtype": (
        lambda arrays: arrays.update(rewards=arrays["rewards"].astype(np.float64)),
        "rewards is float64 [6, 3], expected float32 [6, 3]",
    ),
    "shape": (
        lambda arrays: arrays.update({"observation.1": arrays["observation.1"][..., 1:].copy()}),
        "observation.1 is float32 [6, 3, 39], expected float32 [6, 3, 40]",
    ),
}


@pytest.mark.parametrize("change", VALUES)
def test_values_of_strangers_are_checked(shard: Path, change: str) -> None:
    rewrite_first_batch(shard, lambda arrays: VALUES[change][0](arrays))
    message = refused(shard.parent)
    assert message.startswith(str(shard)) and VALUES[change][1] in message


def test_a_batch_must_fit_the_model(shard: Path) -> None:
    assert read_all(shard.parent, Sizes(num_logits=3, state_shapes=(), num_tasks=1)) == 3
    assert "policy_logits is float32 [5, 3, 3], expected" in refused(shard.parent, Sizes(num_logits=4))
    assert "there is no core_state.0" in refused(shard.parent, Sizes(state_shapes=[(1, 8)]))
    assert "there is no task" in refused(shard.parent, Sizes(num_tasks=2))


def test_shards_of_two_recordings_are_not_mixed(shard: Path) -> None:
    smaller = EnvSpec("Frames-v0", (replace(SCREEN, shape=(6, 6)), SPEC.observation[1]), (CHOICE,))
    record(shard.parent, [random_rollout(smaller)], source_of(smaller), first=3)
    message = refused(shard.parent)
    assert message.startswith(f"{shard.parent}/unrolls-0000000003.safetensors: it is of another recording than {NAME}")
    assert "observation leaf" in message


def test_a_learner_without_shards_is_missed(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="there is no unrolls-"):
        read_recordings(tmp_path)
    record(tmp_path, [random_rollout()], source_of(rank=1, num_ranks=2))
    with pytest.raises(RecordingError, match="has the batches of 1 learners of 2"):
        read_recordings(tmp_path)


def test_arrays_of_the_test_are_compressed(shard: Path) -> None:
    arrays = read_recordings(shard.parent)[0].entries[0].arrays()
    assert arrays["observation.0"].nbytes > LEAST_BYTES
    assert "0.observation.0.lz4" in safetensors.numpy.load_file(shard)
