"""Threads that answer the pool's batches of rows."""

import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

import torch

from kubebeast_learner.machine import priority
from kubebeast_learner.machine.out_of_memory import is_out_of_memory
from kubebeast_learner.profiling.trace import span

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch

_POLL_MS = 100
"""Interval in milliseconds at which a thread that waits checks for a stop."""


class InferencePool(Protocol):
    """The source of the rows: kubebeast_native.ActorPool."""

    def next_inference(self, timeout_ms: int) -> "InferenceBatch | None": ...


class InferenceError(RuntimeError):
    """An inference thread failed; the cause is the thread's own error."""


class PoolThread(threading.Thread, ABC):
    """One thread that answers the pool's batches from `start` to `stop`; subclasses define `_answer`.

    The first error ends the thread; `raise_error` and `stop` raise it.
    """

    def __init__(
        self, pool: InferencePool, device: torch.device | str, may_answer: threading.Event | None = None
    ) -> None:
        """device: that of the model. may_answer: batches wait while it is not set; None answers all at once."""
        super().__init__(name="inference", daemon=True)
        self.stopping = threading.Event()
        """Set by `stop`."""
        self._pool = pool
        self._device = torch.device(device)
        self._may_answer = may_answer
        self._error: BaseException | None = None

    def stop(self, timeout_s: float = 10.0) -> None:
        """Lets the thread finish its batch and ends it; raises its error, or TimeoutError if it takes too long.

        Exceptions of the pool after this call are ignored; close it after this call or during it, not before.
        """
        self.stopping.set()
        if self.ident is not None:
            self.join(timeout_s)
        if self.is_alive():
            raise TimeoutError(f"an inference thread did not stop within {timeout_s} s")
        self.raise_error()

    def raise_error(self) -> None:
        """Raises the error that ended the thread, if there was one."""
        if self._error is not None:
            advice = "; lower max_inference_rows" if is_out_of_memory(self._error) else ""
            raise InferenceError(f"an inference thread failed: {self._error}{advice}") from self._error

    def run(self) -> None:
        """The thread's loop; called by `start`."""
        # OpenMP keeps this number for each thread: without this, matrix products here would take all cores
        # and spin in barriers beside the learner.
        torch.set_num_threads(torch.get_num_threads())
        if self._device.type == "cpu":
            priority.give_way(priority.INFERENCE)
        try:
            with torch.inference_mode(), _own_stream(self._device):
                while not self.stopping.is_set():
                    self._answer_next()
        except BaseException as error:
            if not self.stopping.is_set():
                self._error = error

    def _answer_next(self) -> None:
        # The batch is freed with the call: the next one is gathered into its memory, which the caches still hold.
        batch = self._pool.next_inference(_POLL_MS)
        if batch is not None:
            while not (self._may_answer is None or self._may_answer.wait(_POLL_MS / 1000) or self.stopping.is_set()):
                pass
            with span("inference"):
                self._answer(batch)

    @abstractmethod
    def _answer(self, batch: "InferenceBatch") -> None:
        """Answers the rows."""


def _own_stream(device: torch.device) -> AbstractContextManager[object]:
    """Uses a high-priority stream for this thread on a GPU: actions do not queue behind the learner's kernels."""
    if device.type != "cuda":
        return nullcontext()
    return torch.cuda.stream(torch.cuda.Stream(device, priority=-1))  # type: ignore[no-untyped-call]
