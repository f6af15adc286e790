"""A training without computation on env-servers under fire: the native pool, a constant policy, a strict reader."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

import kubebeast_native as native
from harness.chaos import serials
from harness.chaos.books import imbalance

NUM_ACTIONS = 2
WAIT_S = 300.0


class NativeTraining:
    """Runs between enter and exit; serial environments may dial `address`.

    Checks the books at every batch. Its first error ends it and is raised by every wait, and at exit.
    """

    def __init__(self, *, unroll_length: int = 5, batch_size: int = 3, step_timeout_ms: int = 1000) -> None:
        self.pool = native.ActorPool(
            address="127.0.0.1:0",
            run_id="chaos",
            unroll_length=unroll_length,
            batch_size=batch_size,
            handshake_timeout_ms=2000,
            step_timeout_ms=step_timeout_ms,
            max_offences=0,  # all peers of a test have one host
        )
        self._runs: list[NDArray[np.int64]] = []
        self._changed = threading.Condition()
        self._error: Exception | None = None
        self._closing = False
        self._threads = [threading.Thread(target=self._guard, args=(room,)) for room in (self._act, self._learn)]

    def __enter__(self) -> Self:
        self.pool.start()
        return self

    def open(self) -> None:
        """Waits for the first env-server, then lets it play. Blocks."""
        assert self.pool.wait_env_spec(timeout_ms=int(WAIT_S * 1000)) is not None, "no env-server came"
        self.pool.open(num_logits=NUM_ACTIONS, core_state_size=0)
        for thread in self._threads:
            thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._closing = True
        self.pool.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        if error is None and self._error is not None:
            raise self._error

    @property
    def address(self) -> str:
        return self.pool.address

    def wait_for_batches(self, num_batches: int) -> None:
        """Waits for `num_batches` more batches; raises AssertionError if they do not come."""
        with self._changed:
            target = len(self._runs) + num_batches
            self._changed.wait_for(lambda: len(self._runs) >= target or self._error is not None, WAIT_S)
            if self._error is not None:
                raise self._error
            assert len(self._runs) >= target, "training stands still"

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Checks the condition after every delivered batch; raises AssertionError if it stays false."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"the condition stays false: {self.pool.stats()}"
            self.wait_for_batches(1)

    def tally(self) -> serials.Tally:
        """Returns the tally of the batches delivered so far."""
        with self._changed:
            return serials.tally(self._runs)

    def _guard(self, room: Callable[[], None]) -> None:
        try:
            room()
        except Exception as error:
            with self._changed:
                if not (self._closing and isinstance(error, native.ClosedError)):
                    self._error = self._error or error
                self._changed.notify_all()

    def _act(self) -> None:
        while True:
            batch = self.pool.next_inference(timeout_ms=1000)
            if batch is not None:
                rows = batch.num_rows
                logits = np.zeros((rows, NUM_ACTIONS), np.float32)
                batch.reply([np.zeros(rows, np.int64)], logits, np.zeros(rows, np.float32), policy_version=0)

    def _learn(self) -> None:
        while True:
            batch = self.pool.next_rollouts(timeout_ms=1000)
            books = self.pool.stats()
            assert imbalance(books) == 0, books
            if batch is not None:
                (observation,) = batch.observation
                found = serials.runs(observation, batch.valid)
                with self._changed:
                    self._runs.append(found)
                    self._changed.notify_all()
