"""Reader of a recording: its batches in the order of training, checked, with what is missing between them."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.recording.arrays import Sizes, as_trained_on, rollout_of
from kubebeast_learner.recording.shard_file import read_batch, read_header, unreadable
from kubebeast_learner.recording.shards import Batch, RecordingError, Source, find_shards


class Entry(NamedTuple):
    """A batch in its shard."""

    path: Path
    place: int
    """Place in the shard."""
    began_at: int
    """Update at which the process that recorded it began."""
    batch: Batch

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Reads the arrays. Raises RecordingError."""
        return read_batch(self.path, self.place, self.batch)


class Gap(NamedTuple):
    """Batches that are not recorded."""

    update: int
    """Update of the first of them."""
    num_batches: int


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of one rank. Its headers are read; arrays are read batch by batch."""

    source: Source
    entries: Sequence[Entry]
    """Batches in the order of training, at least one."""

    @property
    def num_updates(self) -> int:
        """Number of updates that its batches made."""
        return sum(self.changes_weights(place) for place in range(len(self.entries)))

    def changes_weights(self, place: int) -> bool:
        """Returns False if the update by the entry at `place` was skipped, so that the next one has its number."""
        following = self.entries[place + 1 : place + 2]
        return not following or following[0].batch.update != self.entries[place].batch.update

    def gaps(self) -> list[Gap]:
        """Returns the gaps between batches, and one before the first batch if that is not the run's first."""
        first = self.entries[0].batch
        found = [Gap(0, first.update)] if first.update else []
        for before, after in itertools.pairwise(entry.batch for entry in self.entries):
            num_missing = max(after.num_missing, after.update - before.update - 1)
            found += [Gap(before.update + 1, num_missing)] if num_missing else []
        return found

    def rollout(self, entry: Entry, distribution: ActionDistribution, sizes: Sizes | None = None) -> Rollout:
        """Reads a batch as it was trained on. Raises RecordingError if it is damaged or does not fit.

        Args:
            entry: One of `entries`.
            distribution: Distribution over the actions.
            sizes: Sizes of the model that trains on it; None accepts those of any model.
        """
        return as_trained_on(self.unstacked(entry, distribution, sizes), entry.batch)

    def unstacked(self, entry: Entry, distribution: ActionDistribution, sizes: Sizes | None = None) -> Rollout:
        """Reads a batch as `rollout` does, with stacks as single frames."""
        arrays = entry.arrays()
        try:
            return rollout_of(arrays, self.source, entry.batch, distribution, sizes)
        except ValueError as error:
            raise unreadable(entry.path, error) from error


def read_recordings(folder: Path) -> list[Recording]:
    """Returns the recordings in a folder, one for each rank. Raises RecordingError if one is missing or wrong."""
    by_rank = [list(shards) for _, shards in itertools.groupby(find_shards(folder), lambda shard: shard.rank)]
    if not by_rank:
        raise RecordingError(f"there is no unrolls-*.safetensors in {folder}")
    recordings = [_read([(shard.path, shard.first_update) for shard in shards]) for shards in by_rank]
    num_ranks = recordings[0].source.num_ranks
    if len(recordings) != num_ranks:
        raise RecordingError(f"{folder} has the batches of {len(recordings)} learners of {num_ranks}")
    return recordings


def _read(shards: Sequence[tuple[Path, int]]) -> Recording:
    """Reads the shards of one rank. Batches that a resumed run has replaced are left out."""
    first = read_header(shards[0][0])
    entries: list[Entry] = []
    for index, (path, first_update) in enumerate(shards):
        header = read_header(path)
        if difference := first.source.difference(header.source):
            raise RecordingError(f"{path}: it is of another recording than {shards[0][0].name}: {difference}")
        if header.batches[0].update != first_update:
            raise RecordingError(f"{path}: it begins at update {header.batches[0].update}, not at that of its name")
        end = shards[index + 1][1] if index + 1 < len(shards) else None
        listed = enumerate(header.batches)
        kept = [(place, batch) for place, batch in listed if end is None or batch.update < end]
        if any(after.update < before.update for (_, before), (_, after) in itertools.pairwise(kept)):
            raise RecordingError(f"{path}: its batches are not in the order of updates")
        entries += [Entry(path, place, header.began_at, batch) for place, batch in kept]
    return Recording(first.source, entries)
