"""The need for shared memory is checked before allocation."""

import os
from pathlib import Path

import pytest

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.actors.mono import shared_memory
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.config import ConfigError, ModelConfig
from kubebeast_learner.models import make_model

SPEC = EnvSpec("Test-v0", (Leaf("", "float32", (4,), 1, 0),), (Leaf("", "int64", (), 1, 2),))


@pytest.fixture
def one_mib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """1 MiB of /dev/shm is free, as under docker run --shm-size."""
    free = os.statvfs_result((4096, 4096, 256, 256, 256, 1000, 1000, 1000, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: free)


@pytest.mark.usefixtures("one_mib")
def test_unrolls_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"unrolls .* take 2\.0 MiB, /dev/shm has 1\.0 MiB: lower num_actors, num_buffers"
    ):
        shared_memory.shared_memory(2 << 20)


@pytest.mark.usefixtures("one_mib")
def test_weights_that_do_not_fit_are_refused() -> None:
    large = make_model(SPEC.observation, SPEC.action, ModelConfig(model="mlp", hidden_sizes=(512, 512)))
    with pytest.raises(ConfigError, match=r"weights take 2\.\d MiB, /dev/shm has 1\.0 MiB: lower hidden_sizes"):
        SharedWeights(large, "fp32", version=0)


@pytest.mark.usefixtures("one_mib")
def test_each_tensor_takes_whole_pages() -> None:
    with pytest.raises(ConfigError, match=r"crumbs take 1\.2 MiB"):
        shared_memory.require_shared_memory([1] * 300, "crumbs", "their number")


def test_memory_that_is_there_is_shared() -> None:
    assert shared_memory.SHARED_MEMORY.is_dir()
    memory = shared_memory.shared_memory(1000)
    memory[...] = 7
    assert memory.sum() == 7000
