"""One actor process as the learner sees it: started, given blocks, heard, started again."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import torch.multiprocessing as multiprocessing

from kubebeast_learner.actors import ActorsError
from kubebeast_learner.mono.actor import ActorFailure, ActorTask, FilledBlock, run_actor
from kubebeast_learner.restarts import RestartPolicy
from kubebeast_learner.rollout import Rollout

logger = logging.getLogger(__name__)

STOP_GRACE_S = 10.0
DEATH_GRACE_S = 1.0
"""How long a process that has closed its pipe may take to end."""


class ActorProcess:
    """Owns the process, its pipe and its blocks. A block is either with the actor or with the learner."""

    def __init__(self, index: int, make_task: Callable[[int], ActorTask]) -> None:
        """make_task: the task for the n-th start, of the same memory and layout every time."""
        self.index = index
        self._make_task = make_task
        self._restarts = RestartPolicy()
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._last_failure = ""
        task = make_task(0)
        self.num_envs = task.num_envs
        self.blocks: Sequence[Rollout] = task.layout.blocks_in(task.memory, task.num_envs)
        self._held: set[int] = set()
        """Numbers of the blocks that are with the learner."""

    @property
    def connection(self) -> Connection | None:
        """Readable when `receive` has something; None while there is no process."""
        return self._connection

    @property
    def is_running(self) -> bool:
        return self._connection is not None

    def start(self) -> None:
        """Starts the process and gives it all blocks that the learner does not hold."""
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        task = self._make_task(self._restarts.num_starts)
        process = context.Process(target=run_actor, args=(task, theirs), name=f"actor-{self.index}", daemon=True)
        process.start()
        theirs.close()  # so that its death ends `mine`
        self._process, self._connection = process, mine
        self._restarts.note_start()
        for number in range(len(self.blocks)):
            if number not in self._held:
                self._send(number)

    def receive(self) -> FilledBlock | None:
        """The next filled block, which the learner holds from here on; None when the process has ended instead."""
        assert self._connection is not None
        try:
            message: FilledBlock | ActorFailure = self._connection.recv()
        except (EOFError, OSError):
            message = ActorFailure("")
        if isinstance(message, ActorFailure):  # its last message: a process that hangs at its end is not waited for
            self._last_failure = message.reason
            self._connection.close()
            self._connection = None
            return None
        self._held.add(message.number)
        return message

    def release(self, number: int) -> None:
        """Gives a block back to the actor."""
        self._held.remove(number)
        self._send(number)

    def check(self) -> bool:
        """Starts a process that died again, after a back-off; whether it did. ActorsError when it will not come up."""
        if self._connection is not None:
            return False
        if self._process is not None:
            self._note_death(self._process)
        elif self._restarts.is_due:
            self.start()
            return True
        return False

    def ask_to_stop(self) -> None:
        self._send(None)

    def end(self, timeout_s: float) -> None:
        """Waits for the process, then kills it."""
        if self._process is not None:
            self._reap(self._process, timeout_s)
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note_death(self, process: SpawnProcess) -> None:
        self._reap(process, DEATH_GRACE_S)
        wait_s = self._restarts.note_death()
        what = f"actor process {self.index} ended with status {process.exitcode}"
        if self._last_failure:
            what += f": {self._last_failure}"
        if wait_s is None:
            raise ActorsError(what)
        self._last_failure = ""
        logger.warning("%s; restarting it in %.0f s", what, wait_s)

    def _reap(self, process: SpawnProcess, timeout_s: float) -> None:
        process.join(timeout_s)
        process.kill()
        process.join()
        self._process = None

    def _send(self, number: int | None) -> None:
        """To a process that died nothing is sent: its next life gets every block the learner does not hold."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.send(number)
