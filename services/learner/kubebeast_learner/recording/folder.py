"""The folder of a recording, as its writer uses it: one folder may have the shards of several ranks."""

import logging
from pathlib import Path

from kubebeast_common.atomic_file import SUFFIX as UNFINISHED
from kubebeast_common.volume import is_full
from kubebeast_learner.config import ConfigError
from kubebeast_learner.recording.shard_file import read_header
from kubebeast_learner.recording.shards import RecordingError, ShardFile, Source, find_shards, named

logger = logging.getLogger(__name__)


def continue_recording(folder: Path, source: Source, update: int, *, is_new_run: bool) -> None:
    """Makes the folder ready for the batches of a rank from `update` on.

    Shards of a resumed run from after its checkpoint are deleted: other batches take their place.

    Raises:
        ConfigError: If it has the recording of another run, or any although the run is new, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shards = _own_shards(folder, source.rank)
        _require_own(folder, shards, source, is_new_run=is_new_run)
        for path in folder.iterdir():
            unfinished = named(path, UNFINISHED)
            if unfinished is not None and unfinished.rank == source.rank:
                path.unlink(missing_ok=True)
        later = [shard for shard in shards if shard.first_update >= update]
        for shard in later:
            shard.path.unlink(missing_ok=True)
    except OSError as error:
        if is_full(error):
            return  # it costs the run its recording, as later
        raise ConfigError(f"record = {str(folder)!r}: {error}") from error
    if later:
        logger.info("%d files of %s are from after the checkpoint, and were deleted", len(later), folder)


def make_room(folder: Path, rank: int, num_bytes: int, max_bytes: int) -> None:
    """Deletes the oldest shards of a rank until one of `num_bytes` fits into `max_bytes`. Raises OSError."""
    shards = _own_shards(folder, rank)
    sizes = [shard.path.stat().st_size for shard in shards]
    total = sum(sizes) + num_bytes
    for shard, size in zip(shards, sizes, strict=True):
        if total <= max_bytes:
            return
        shard.path.unlink(missing_ok=True)
        total -= size


def _own_shards(folder: Path, rank: int) -> list[ShardFile]:
    return [shard for shard in find_shards(folder) if shard.rank == rank]


def _require_own(folder: Path, shards: list[ShardFile], source: Source, *, is_new_run: bool) -> None:
    if not shards:
        return
    if is_new_run:
        raise ConfigError(f"record = {str(folder)!r}: it has a recording already; name an empty folder for a new run")
    try:
        difference = read_header(shards[-1].path).source.difference(source)
    except RecordingError as error:
        raise ConfigError(f"record = {str(folder)!r}: {error}") from error
    if difference:
        raise ConfigError(f"record = {str(folder)!r}: it has another recording: {difference}")
