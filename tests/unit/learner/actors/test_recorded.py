"""A recording as actors: the batches in order, in whole passes, from where a run has stopped, and a clear end."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kubebeast_learner.actors.base import ActorsError
from kubebeast_learner.actors.recorded import RecordedActors
from kubebeast_learner.config import ConfigError, ModelConfig, ReplayConfig, RolloutConfig, TrainingConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.recording.reader import read_recordings
from kubebeast_learner.recording.recorder import Limits, Recorder
from tests.unit.learner.recording.recorded_batches import SMALL, B, T, random_rollout, record, source_of

TIMEOUT_MS = 60_000
CONFIG = TrainingConfig(rollout=RolloutConfig(unroll_length=T, batch_size=B), model=ModelConfig(model="mlp"))


def make_mlp(config: ModelConfig = CONFIG.model) -> Model:
    return make_model(SMALL.observation, SMALL.action, config)


@contextlib.contextmanager
def started(
    folder: Path, *, passes: int = 1, version: int = 0, config: TrainingConfig = CONFIG
) -> Iterator[RecordedActors]:
    (recording,) = read_recordings(folder)
    with RecordedActors(config, recording, passes) as actors:
        assert actors.wait_env_spec(0) == SMALL
        actors.start(make_mlp(config.model), torch.device("cpu"), version)
        yield actors


def taken(actors: RecordedActors) -> list[float]:
    """Takes batches until the end; returns a number of each."""
    numbers = []
    while (rollout := actors.next_rollout(TIMEOUT_MS)) is not None:
        assert actors.ended == ""
        numbers.append(rollout.rewards[0, 0].item())
    return numbers


def numbers(*seeds: int) -> list[float]:
    return [random_rollout(seed=seed).rewards[0, 0].item() for seed in seeds]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path, [random_rollout(seed=seed) for seed in range(4)], shard_bytes=1)
    return tmp_path


def test_batches_come_in_the_order_of_training_and_then_end(folder: Path) -> None:
    with started(folder) as actors:
        assert taken(actors) == numbers(0, 1, 2, 3)
        assert actors.ended == "the recording has ended"
        assert actors.next_rollout(0) is None


def test_passes_repeat_the_recording(folder: Path) -> None:
    with started(folder, passes=2) as actors:
        assert taken(actors) == numbers(0, 1, 2, 3, 0, 1, 2, 3)


@pytest.mark.parametrize(("version", "left"), [(3, (3, 0, 1, 2, 3)), (4, (0, 1, 2, 3)), (6, (2, 3)), (8, ())])
def test_a_resumed_training_goes_on_after_its_updates(folder: Path, version: int, left: tuple[int, ...]) -> None:
    with started(folder, passes=2, version=version) as actors:
        assert taken(actors) == numbers(*left)


def test_a_resumed_training_does_not_count_skipped_updates(tmp_path: Path) -> None:
    failures: dict[str, int] = {}
    with Recorder(tmp_path, source_of(), update=0, limits=Limits(1, 0, 100), failures=failures) as recorder:
        for seed, update in enumerate((0, 1, 1, 2)):
            recorder.add(random_rollout(seed=seed), update=update, step=0)
    with started(tmp_path, version=2) as actors:
        assert taken(actors) == numbers(3)


def test_a_batch_that_is_not_read_yet_is_waited_for(folder: Path) -> None:
    with started(folder) as actors:
        assert actors.stats()["rollout_queue_capacity"] == 2 * B
    (recording,) = read_recordings(folder)
    idle = RecordedActors(CONFIG, recording, 1)
    assert idle.next_rollout(0) is None
    assert idle.next_rollout(10) is None
    assert idle.ended == ""


def test_a_damaged_batch_ends_the_training_with_the_name_of_its_file(folder: Path) -> None:
    path = folder / "unrolls-0000000002.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with started(folder) as actors:
        assert [actors.next_rollout(TIMEOUT_MS) is None for _ in range(2)] == [False, False]
        with pytest.raises(ActorsError, match=rf"{path}: the checksum of the batch of update 2 is wrong"):
            actors.next_rollout(TIMEOUT_MS)


def test_gaps_are_announced(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "unrolls-0000000000.safetensors").unlink()
    (folder / "unrolls-0000000002.safetensors").unlink()
    with caplog.at_level(logging.WARNING), started(folder) as actors:
        assert taken(actors) == numbers(1, 3)
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "the recording lacks 1 batches from update 0 on",
        "the recording lacks 1 batches from update 2 on",
    ]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (replace(CONFIG, rollout=RolloutConfig(unroll_length=9, batch_size=B)), "unroll_length = 9: .* with 5"),
        (replace(CONFIG, rollout=RolloutConfig(unroll_length=T, batch_size=8)), "batch_size = 8: .* with 3"),
        (replace(CONFIG, replay=ReplayConfig(replay_share=0.5)), "replay_share = 0.5: a recording has the replayed"),
    ],
)
def test_settings_must_fit(folder: Path, config: TrainingConfig, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason), started(folder, config=config):
        pass


def test_a_model_with_a_memory_needs_its_states(folder: Path) -> None:
    config = replace(CONFIG, model=ModelConfig(model="mlp", use_lstm=True))
    with started(folder, config=config) as actors, pytest.raises(ActorsError, match=r"there is no core_state.0"):
        actors.next_rollout(TIMEOUT_MS)


def test_a_thread_with_batches_that_nobody_takes_ends(folder: Path) -> None:
    with started(folder, passes=1000) as actors:
        actors.next_rollout(TIMEOUT_MS)
