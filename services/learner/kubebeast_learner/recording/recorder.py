"""Writer of a recording: the training's thread copies batches, a thread of its own packs and writes them."""

import logging
import queue
import threading
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

from kubebeast_common.atomic_file import write_atomically
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.recording.arrays import arrays_of, copied
from kubebeast_learner.recording.folder import make_room
from kubebeast_learner.recording.shard_file import Stored, encode, num_bytes, pack
from kubebeast_learner.recording.shards import Batch, Header, Source, shard_name

logger = logging.getLogger(__name__)

SHARDS, DROPPED = "recording", "recording/dropped"
"""Names in the counts of failed writes: shards that could not be written, and batches that found no place."""
MAX_BATCHES = 10_000
"""Number of batches in a shard, which bounds its header."""
CLOSE_S = 60.0
"""Longest wait for the last shard at the end of a run."""


class Limits(NamedTuple):
    """Limits of files and memory."""

    shard_bytes: int
    """Size that a shard has at least, unless it ends with a checkpoint or the run."""
    max_bytes: int
    """Size of all shards of the rank, from which the oldest is deleted; 0 sets no limit."""
    max_waiting: int = 4
    """Most batches that wait for the writer."""


class Recorder:
    """The recording of one rank. For one thread, which no method but `close` holds up. A context manager that closes.

    A batch is dropped if max_waiting others wait for the volume, and a shard if it cannot be written: both are counted
    in `failures`, logged once, and named in the recording as missing.
    """

    def __init__(
        self, folder: Path, source: Source, *, update: int, limits: Limits, failures: MutableMapping[str, int]
    ) -> None:
        """update: number of updates at the start of this process. failures: counts of failed writes by name."""
        self._observation = source.env_spec.observation
        self._failures = failures
        failures.update({SHARDS: 0, DROPPED: 0})
        self._num_missing = 0
        """Batches that were dropped since the last one that was not."""
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._places = threading.Semaphore(limits.max_waiting)
        self._writer = _Writer(folder, source, update, limits, failures)
        self._thread = threading.Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    def add(self, rollout: Rollout, *, update: int, step: int) -> None:
        """Copies a batch of the next update, on the CPU.

        Args:
            update: number of updates before it.
            step: env-steps trained on before it.
        """
        if not self._places.acquire(blocking=False):
            self._num_missing += 1
            self._failures[DROPPED] += 1
            if self._num_missing == 1:
                logger.warning("the recording is slower than the training: batches are missing from update %d", update)
            return
        copy, layouts = copied(rollout, self._observation)
        batch = Batch(
            update=update,
            step=step,
            num_replayed=rollout.num_replayed,
            num_missing=self._num_missing,
            policy_versions=rollout.policy_version[0].tolist(),
            layouts=layouts,
        )
        self._num_missing = 0
        self._queue.put(_Waiting(batch, copy))

    def end_shard(self) -> None:
        """Lets the present shard be written as it is, before a checkpoint that a resumed run goes on from."""
        self._queue.put(_Waiting(None, None))

    def close(self) -> None:
        """Writes the last shard, and waits for it for at most CLOSE_S. Idempotent."""
        self._queue.put(None)
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            logger.error("the end of the recording was not written in %g s", CLOSE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self) -> None:
        try:
            while (waiting := self._queue.get()) is not None:
                if waiting.batch is None or waiting.rollout is None:
                    self._writer.write()
                    continue
                self._writer.add(waiting.batch, waiting.rollout)
                self._places.release()
            self._writer.write()
        except Exception:  # the training goes on, and all further batches are counted as dropped
            logger.exception("the recording ends before the run")


class NoRecorder:
    """A Recorder for a run without a recording."""

    def add(self, rollout: Rollout, *, update: int, step: int) -> None: ...

    def end_shard(self) -> None: ...


class _Waiting(NamedTuple):
    """A batch on its way to the writer; without one, the end of a shard."""

    batch: Batch | None
    rollout: Rollout | None


class _Writer:
    """The shard that is being made. For the writing thread."""

    def __init__(
        self, folder: Path, source: Source, update: int, limits: Limits, failures: MutableMapping[str, int]
    ) -> None:
        self._folder, self._source, self._began_at, self._limits = folder, source, update, limits
        self._failures = failures
        self._batches: list[Batch] = []
        self._content: list[Stored] = []
        self._num_bytes = 0
        self._num_lost = 0
        """Batches of the shards that could not be written since the last one that could."""

    def add(self, batch: Batch, rollout: Rollout) -> None:
        """Adds a batch, after the shard before it was written if that has its size."""
        is_full = self._num_bytes >= self._limits.shard_bytes or len(self._batches) >= MAX_BATCHES
        if is_full and batch.update > self._batches[0].update:
            self.write()
        if self._num_lost and not self._batches:
            batch = replace(batch, num_missing=batch.num_missing + self._num_lost)
        batch, stored = pack(batch, arrays_of(rollout))
        self._batches.append(batch)
        self._content.append(stored)
        self._num_bytes += num_bytes(stored)

    def write(self) -> None:
        """Writes the shard, if it has a batch, or drops it; the next batch begins another one."""
        if not self._batches:
            return
        path = self._folder / shard_name(self._batches[0].update, self._source.rank, self._source.num_ranks)
        content = encode(Header(source=self._source, began_at=self._began_at, batches=self._batches), self._content)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._limits.max_bytes:
                make_room(self._folder, self._source.rank, len(content), self._limits.max_bytes)
            write_atomically(path, content)
        except OSError as error:
            self._failures[SHARDS] += 1
            if not self._num_lost:
                logger.warning("%s is not written: %s; the run goes on without it", path, error.strerror or error)
            self._num_lost = len(self._batches) + self._batches[0].num_missing
        else:
            if self._num_lost:
                logger.warning("%s is written again; %d batches before it are missing", self._folder, self._num_lost)
            self._num_lost = 0
        self._batches, self._content, self._num_bytes = [], [], 0
