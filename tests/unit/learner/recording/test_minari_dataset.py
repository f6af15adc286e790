"""A data set of Minari has the episodes of a recording, in spaces that hold them."""

from pathlib import Path

import minari
import numpy as np
import pytest
from gymnasium import spaces

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.commands.export_data import find_recording
from kubebeast_learner.config import ConfigError, ExportDataConfig
from kubebeast_learner.recording.episodes import Episode
from kubebeast_learner.recording.minari_dataset import place_of, write_dataset
from tests.unit.learner.recording.recorded_batches import SMALL, random_rollout, record, source_of

N = 6
RICH = EnvSpec(
    "Rich-v0",
    (
        Leaf("film", "uint8", (40, 40), frame_stack=3),
        Leaf("room", "int64", (), num_categories=4),
        Leaf("hand.force", "float32", (2,)),
    ),
    (Leaf("0", "int64", (), num_categories=3), Leaf("1", "int64", (), num_categories=5)),
)


def episode(spec: EnvSpec, *, terminated: bool = True, seed: int = 0) -> Episode:
    generator = np.random.default_rng(seed)

    def values(leaf: Leaf, count: int) -> np.ndarray:
        high = leaf.num_categories or 250
        return generator.integers(high, size=(count, *leaf.row_shape)).astype(leaf.dtype)

    return Episode(
        [values(leaf, N + 1) for leaf in spec.observation],
        [values(leaf, N) for leaf in spec.action],
        generator.normal(size=N).astype(np.float32),
        terminated,
        not terminated,
        is_whole=True,
    )


def test_minari_reads_structures_as_they_were_recorded(tmp_path: Path) -> None:
    written = [episode(RICH, seed=0), episode(RICH, seed=1, terminated=False)]
    assert write_dataset(tmp_path / "set", "rich-v0", source_of(RICH), written) == (2, 2 * N)
    dataset = minari.MinariDataset(tmp_path / "set" / "data")

    assert dataset.id == "rich-v0" and (dataset.total_episodes, dataset.total_steps) == (2, 2 * N)
    assert dataset.action_space == spaces.MultiDiscrete([3, 5])
    for mine, read in zip(written, dataset, strict=True):
        for leaf, array in zip(RICH.observation, mine.observation, strict=True):
            np.testing.assert_array_equal(read.observations[leaf.path], array)
        np.testing.assert_array_equal(read.actions, np.stack(mine.action, axis=1))
        np.testing.assert_array_equal(read.rewards, mine.rewards)
        assert read.terminations.tolist() == [False] * (N - 1) + [mine.terminated]
        assert read.truncations.tolist() == [False] * (N - 1) + [mine.truncated]
        first = {name: array[0] for name, array in read.observations.items()}
        assert first in dataset.observation_space and read.actions[0] in dataset.action_space


def test_images_are_stored_without_loss(tmp_path: Path) -> None:
    spec = EnvSpec("Image-v0", (Leaf("", "uint8", (40, 40)),), SMALL.action)
    written = episode(spec)
    write_dataset(tmp_path / "set", "image-v0", source_of(spec), [written])
    read = minari.MinariDataset(tmp_path / "set" / "data")[0]
    np.testing.assert_array_equal(read.observations, written.observation[0])


def test_bounded_actions_are_those_that_the_environment_has_taken(tmp_path: Path) -> None:
    spec = EnvSpec("Arm-v0", SMALL.observation, (Leaf("", "float32", (1,), bounded=True),))
    written = episode(spec)._replace(action=[np.linspace(-3, 3, N, dtype=np.float32).reshape(N, 1)])
    write_dataset(tmp_path / "set", "arm-v0", source_of(spec), [written])
    dataset = minari.MinariDataset(tmp_path / "set" / "data")
    assert dataset.action_space == spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert dataset[0].actions[:, 0].tolist() == np.clip(written.action[0][:, 0], -1, 1).tolist()


def test_a_dataset_of_an_id_is_found_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    folder, dataset_id = place_of("minari://small/recorded-v3", "run")
    write_dataset(folder, dataset_id, source_of(), [episode(SMALL)])

    assert minari.load_dataset("small/recorded-v3").total_steps == N
    assert list(minari.list_local_datasets()) == ["small/recorded-v3"]
    assert "small/recorded-v3" in (folder / "README.md").read_text()


def test_a_folder_has_the_name_of_the_run_as_id(tmp_path: Path) -> None:
    assert place_of(str(tmp_path / "new"), "my run 1.5") == (tmp_path / "new", "my_run_1_5-v0")


@pytest.mark.parametrize("target", ["minari://small", "minari://../small-v0", "minari:///small-v0"])
def test_an_id_without_a_version_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match="the id must end in a version"):
        place_of(target, "run")


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"to = '.*': .* exists already"):
        place_of(str(tmp_path), "run")


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it has no such episode"):
        write_dataset(tmp_path / "set", "small-v0", source_of(), [])
    assert list(tmp_path.iterdir()) == []


def test_names_that_minari_cannot_store_are_named(tmp_path: Path) -> None:
    spec = EnvSpec("Slash-v0", (Leaf("a/b", "float32", (1,)),), SMALL.action)
    with pytest.raises(ConfigError, match="the leaf 'a/b' has a / in its name"):
        write_dataset(tmp_path / "set", "slash-v0", source_of(spec), [episode(spec)])


def test_a_recording_is_found_by_its_folder_and_by_its_run(tmp_path: Path) -> None:
    record(tmp_path / "recording", [random_rollout()])
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    meta = '{"args": {"record": "%s"}}' % (tmp_path / "recording")
    (tmp_path / "runs" / "mine" / "meta.json").write_text(meta)

    for name in (str(tmp_path / "recording"), "mine", str(tmp_path / "runs" / "mine")):
        assert find_recording(name, str(tmp_path / "runs")) == tmp_path / "recording"
    with pytest.raises(ConfigError, match="recording = 'other': neither a folder with a recording nor a run"):
        find_recording("other", str(tmp_path / "runs"))


@pytest.mark.parametrize("to", ["", "minari://", "s3://bucket/set"])
def test_a_target_that_is_none_is_refused(to: str) -> None:
    with pytest.raises(ConfigError, match="to = "):
        ExportDataConfig(recording="run", to=to)
