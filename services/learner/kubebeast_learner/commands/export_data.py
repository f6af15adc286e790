"""`kubebeast export-data`: the episodes of a recording as a data set for other programs."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console

from kubebeast_learner.config import ConfigError, ExportDataConfig
from kubebeast_learner.recording.episodes import Episode, episodes_of
from kubebeast_learner.recording.reader import read_recordings
from kubebeast_learner.recording.shards import RecordingError, find_shards
from kubebeast_runs.folder import folder_of, read_meta


def run(config: ExportDataConfig) -> int:
    """Runs the command. Returns the exit status. Raises ConfigError if there is no recording or no place to write to.

    Raises ModuleNotFoundError if Minari is not installed.
    """
    from kubebeast_learner.recording.minari_dataset import place_of, write_dataset  # needs an extra

    source = find_recording(config.recording, config.savedir)
    try:
        recordings = read_recordings(source)
        folder, dataset_id = place_of(config.to, recordings[0].source.run)
        chosen = Chosen(itertools.chain.from_iterable(map(episodes_of, recordings)), only_whole=config.whole_episodes)
        num_episodes, num_steps = write_dataset(folder, dataset_id, recordings[0].source, chosen)
    except (RecordingError, ValueError) as error:
        Console(stderr=True).print(f"kubebeast export-data: {source}: {error}", markup=False, soft_wrap=True)
        return 1
    what = f"{num_episodes:,} episodes, {num_steps:,} steps of {recordings[0].source.env_spec.env_id}"
    cut = "further ones were left out" if config.whole_episodes else "of them were cut"
    print(f"{folder}: {what}; {chosen.num_cut:,} {cut}, as the recording lacks their beginning or their end")
    return 0


def find_recording(name: str, savedir: str) -> Path:
    """Returns the folder of a recording, by its path or its run. Raises ConfigError if there is none."""
    folder = Path(name).expanduser()
    try:
        runs = folder, folder_of(savedir, name, with_checkpoints=False)
    except OSError as error:
        raise ConfigError(f"savedir = {savedir!r}: {error}") from error
    recorded = [read_meta(run).get("args", {}).get("record") for run in runs]
    for place in (folder, *(Path(each) for each in recorded if isinstance(each, str))):
        if find_shards(place):
            return place
    raise ConfigError(f"recording = {name!r}: neither a folder with a recording nor a run that has made one")


class Chosen:
    """The episodes to export, and the number of those that are not whole."""

    def __init__(self, episodes: Iterable[Episode], *, only_whole: bool) -> None:
        self._episodes, self._only_whole = episodes, only_whole
        self.num_cut = 0

    def __iter__(self) -> Iterator[Episode]:
        for episode in self._episodes:
            self.num_cut += not episode.is_whole
            if episode.is_whole or not self._only_whole:
                yield episode
