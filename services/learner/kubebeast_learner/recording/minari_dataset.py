"""Episodes as a Minari dataset, https://minari.farama.org; needs the extra `minari`."""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import minari
import numpy as np
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage
from minari.storage.datasets_root_dir import get_dataset_path

from kubebeast_common.spec.leaves import Leaf
from kubebeast_common.spec.spaces import Array, action_batch, action_space, observation_batch, observation_space
from kubebeast_learner.config import ConfigError
from kubebeast_learner.recording.episodes import Episode
from kubebeast_learner.recording.shards import Source

SCHEME = "minari://"
_ID = re.compile(r"(?:[-_\w]+/)*[-_\w]+-v\d+")
_CARD = """# {dataset_id}

Recorded by KubeBeast from the training of the run {run}.

- Environment: {env_id}
- Episodes: {num_episodes}, with {num_steps} steps
- Observations and actions: the leaves of the environment as the policy reads and chooses them. Rewards are not clipped.
- Policy: changes with every update of the training, from its initial weights on.
"""


def place_of(target: str, run: str) -> tuple[Path, str]:
    """Returns folder and id of the dataset that `target` names: minari://ID in Minari's own folder, or a folder.

    Raises ConfigError for an invalid id, and if the folder exists.
    """
    dataset_id = target.removeprefix(SCHEME)
    if target != dataset_id:
        if _ID.fullmatch(dataset_id) is None:
            raise ConfigError(f"to = {target!r}: the id must end in a version, such as minari://pong/recorded-v0")
        folder = Path(get_dataset_path(dataset_id))
    else:
        folder, dataset_id = Path(target).expanduser().absolute(), re.sub(r"[^-_\w]", "_", run) + "-v0"
    if folder.exists():
        raise ConfigError(f"to = {target!r}: {folder} exists already")
    return folder, dataset_id


def write_dataset(folder: Path, dataset_id: str, source: Source, episodes: Iterable[Episode]) -> tuple[int, int]:
    """Writes a dataset, complete or not at all; returns the numbers of its episodes and steps.

    Args:
        folder: New folder for `data`, which MinariDataset reads, and README.md.
        dataset_id: Name of the dataset.
        source: Origin of the episodes.
        episodes: Written one by one.

    Raises:
        ConfigError: If Minari cannot store the leaves, or the folder cannot be written.
        ValueError: If there is no episode.
    """
    observation, action = source.env_spec.observation, source.env_spec.action
    for leaf in (*observation, *action):
        if "/" in leaf.path:
            raise ConfigError(
                f"format = 'minari': the leaf {leaf.path!r} has a / in its name, which Minari cannot store"
            )
    unfinished = folder.with_name(folder.name + ".tmp")
    try:
        (unfinished / "data").mkdir(parents=True)
        storage = MinariStorage.new(
            unfinished / "data",
            observation_space(observation),
            action_space(action),
            data_format="hdf5",
            jpeg_encoding=False,  # it is lossy
        )
        storage.update_episodes(_buffers(observation, action, episodes))
        num_episodes, num_steps = storage.total_episodes, storage.total_steps
        if num_episodes == 0:
            raise ValueError("it has no such episode")
        facts = {"dataset_id": dataset_id, "minari_version": minari.__version__, "algorithm_name": "IMPALA (KubeBeast)"}
        env_id = source.env_spec.env_id
        storage.update_metadata({**facts, "env_id": env_id, "run": source.run})
        card = _CARD.format(
            dataset_id=dataset_id, run=source.run, env_id=env_id, num_episodes=num_episodes, num_steps=num_steps
        )
        (unfinished / "README.md").write_text(card, encoding="utf-8")
        unfinished.rename(folder)
    except OSError as error:
        raise ConfigError(f"to = {str(folder)!r}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return num_episodes, num_steps


def _buffers(
    observation: Sequence[Leaf], action: Sequence[Leaf], episodes: Iterable[Episode]
) -> Iterator[EpisodeBuffer]:
    for episode in episodes:
        length = len(episode.rewards)
        yield EpisodeBuffer(
            observations=observation_batch(observation, episode.observation),
            actions=action_batch(action, [_taken(*pair) for pair in zip(action, episode.action, strict=True)]),
            rewards=episode.rewards,
            terminations=_at_end(episode.terminated, length),
            truncations=_at_end(episode.truncated, length),
        )


def _taken(leaf: Leaf, actions: Array) -> Array:
    """Returns the actions within the bounds to which the env-server clips them."""
    return np.clip(actions, -1.0, 1.0) if leaf.bounded else actions


def _at_end(flag: bool, length: int) -> Array:
    flags = np.zeros(length, np.bool_)
    flags[-1] = flag
    return flags
