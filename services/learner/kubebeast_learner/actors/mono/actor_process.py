"""One actor process on the learner's side: start, exchange of blocks and messages, restart."""

import contextlib
import logging
import multiprocessing.connection
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import torch.multiprocessing

from kubebeast_common.backoff import Retries
from kubebeast_common.process.family import Family
from kubebeast_envserver.faults.hang_watch import HangWatch, end_process
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.base import ACTOR_FAULTS, ActorsError
from kubebeast_learner.actors.mono.actor import ActorFailure, ActorTask, BlockOrder, FilledBlock, LogLine, run_actor
from kubebeast_learner.actors.mono.level_queue import LevelSupply
from kubebeast_learner.actors.mono.outbox import Outbox
from kubebeast_learner.algorithm.rollout import Rollout

logger = logging.getLogger(__name__)

STOP_GRACE_S = 10.0
DEATH_GRACE_S = 1.0
"""Seconds that a process may take to end after it has closed its pipe."""
_CHUNK_BYTES = 1 << 16


class ActorProcess:
    """The owner of the process, its pipe and its blocks. A block is either with the actor or with the learner.

    Only `end` waits for the process, and `receive` for the rest of a message.
    """

    def __init__(
        self,
        index: int,
        make_task: Callable[[int, StreamStatus], ActorTask],
        env_timeout_s: float,
        draw_levels: Callable[[int], Sequence[str]] | None = None,
    ) -> None:
        """make_task: returns the task for the n-th start, with the same memory and layout every time.

        env_timeout_s: the longest that its environments may compute at a time. draw_levels: chooses the levels of
        episodes; None without a curriculum.
        """
        self.index = index
        self._make_task = make_task
        self._retries = Retries(ACTOR_FAULTS)
        self._process: SpawnProcess | None = None
        self._family = Family()
        self.connection: Connection | None = None
        """Readable if `receive` has a message; None while there is no process."""
        self._outbox: Outbox | None = None
        self._last_failure = ActorFailure("")
        self._status: StreamStatus = torch.multiprocessing.get_context("spawn").RawValue(StreamStatus)
        self._env_timeout_s = env_timeout_s
        self._hang_watch = HangWatch(env_timeout_s)
        task = make_task(0, self._status)
        self.num_envs = task.num_envs * len(task.seeds)
        self.blocks: Sequence[Rollout] = task.layout.blocks_in(task.memory, task.num_envs)
        self._levels = None
        if draw_levels is not None:
            self._levels = LevelSupply(draw_levels, self.num_envs, len(self.blocks))
        self._ordered: dict[int, BlockOrder] = {}
        """Orders by block that the actor has not filled yet; other blocks are with the learner."""

    @property
    def num_failed_episodes(self) -> int:
        """Episodes cut short by failures of their environments, over all lives of the process."""
        return self._status.episodes_interrupted

    def start(self) -> None:
        """Starts the process and repeats the orders that are left."""
        context = torch.multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        self._status.forget_process()
        self._hang_watch.forget()
        task = self._make_task(self._retries.num_failures, self._status)
        if self._levels is not None:
            task = replace(task, levels=self._levels.begin(sum(len(order.levels) for order in self._ordered.values())))
        process = context.Process(target=run_actor, args=(task, theirs), name=f"actor-{self.index}", daemon=True)
        with self._family.starting():
            process.start()
        theirs.close()
        self._process, self.connection, self._outbox = process, mine, Outbox(mine)
        for order in self._ordered.values():
            self._send(order)

    def receive(self) -> FilledBlock | None:
        """Returns the next filled block, which the learner then holds; None if the message was another one."""
        assert self.connection is not None
        try:
            message: FilledBlock | LogLine | ActorFailure = self.connection.recv()
        except (EOFError, OSError):
            message = ActorFailure("")
        if isinstance(message, LogLine):
            logger.log(message.level, "actor process %d: %s", self.index, message.message)
            return None
        if isinstance(message, ActorFailure):  # its last message: a process that hangs at its end is not waited for
            self._last_failure = message
            self._close()
            return None
        del self._ordered[message.number]
        if self._levels is not None:
            self._levels.note(*message.level_counts)
        self._retries.note_success()
        return message

    def order(self, number: int, version: int | None = None) -> None:
        """Gives the actor a block, to be filled after those ordered before. version: see BlockOrder."""
        levels = () if self._levels is None else self._levels.refill()
        self._ordered[number] = BlockOrder(number, version, levels)
        self._send(self._ordered[number])

    def check(self) -> bool:
        """Restarts a process that died, after a back-off; returns True if it did. Kills one with hanging environments.

        Raises ActorsError if the process cannot be kept running.
        """
        if self.connection is not None:
            self._look()
        elif self._process is not None:
            self._note_death(self._process)
        elif self._retries.is_due:
            self.start()
            return True
        return False

    def ask_to_stop(self) -> None:
        self._send(None)

    def end(self, timeout_s: float) -> None:
        """Waits for the process, then kills it. Drops its messages: it may have to send one before it can stop."""
        if self._process is not None:
            deadline = time.monotonic() + timeout_s
            self._drop_messages(self._process, deadline)
            self._reap(self._process, max(0.0, deadline - time.monotonic()))
        self._close()

    def _look(self) -> None:
        """Checks a process with an open pipe, which may stay open after its death if its environments have forked."""
        assert self._process is not None and self._process.pid is not None and self.connection is not None
        if self._process.exitcode is None:
            self._family.look(self._process.pid)
            if self._hang_watch.look(self._process, self._status):
                text = "actor process %d: its environments computed for more than env_timeout_s = %g s: killed"
                logger.warning(text, self.index, self._env_timeout_s)
            return
        self._family.kill()
        if not self.connection.poll(0):  # its last messages, and the end of the pipe, are received as ever
            self._close()

    def _note_death(self, process: SpawnProcess) -> None:
        self._reap(process, DEATH_GRACE_S)
        wait_s = self._retries.note_failure()
        failure, self._last_failure = self._last_failure, ActorFailure("")
        # A reason is better than the status: a process that takes long to end after its failure is killed.
        end = f"failed: {failure.reason}" if failure.reason else f"ended with status {process.exitcode}"
        what = f"actor process {self.index} {end}"
        if failure.is_final or wait_s is None:
            raise ActorsError(what)
        logger.warning("%s; restarting it in %.1f s", what, wait_s)

    def _reap(self, process: SpawnProcess, timeout_s: float) -> None:
        end_process(process, timeout_s)
        self._family.kill()
        self._process = None

    def _drop_messages(self, process: SpawnProcess, deadline: float) -> None:
        """Reads from the pipe until its end, that of the process, or `deadline` in time.monotonic()."""
        if self.connection is None:
            return
        pipe, wait = self.connection.fileno(), multiprocessing.connection.wait
        while wait([pipe, process.sentinel], max(0.0, deadline - time.monotonic())) == [pipe]:
            # No whole messages: a process that hangs within one would keep this one waiting.
            if not _read(pipe):
                return

    def _close(self) -> None:
        """Closes the pipe. Idempotent."""
        if self.connection is not None and self._outbox is not None:
            self._outbox.close()
            self.connection.close()
            self.connection = self._outbox = None

    def _send(self, order: BlockOrder | None) -> None:
        """Sends nothing to a process that died: its next life gets the orders that are left."""
        if self._outbox is not None:
            self._outbox.put(order)


def _read(pipe: int) -> bytes:
    """Returns bytes that are there, b"" at the end of the pipe."""
    with contextlib.suppress(ConnectionError):
        return os.read(pipe, _CHUNK_BYTES)
    return b""
