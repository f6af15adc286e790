"""A thread that saves checkpoints."""

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from kubebeast_learner.models.finite import not_finite_in
from kubebeast_learner.run.checkpoint import CheckpointStore, Saved


class Outcome(NamedTuple):
    """The outcome of one save."""

    step: int
    seconds: float
    result: Saved | Exception | str
    """The written checkpoint; the error, mostly an OSError; or the description of a number that is not finite, which
    was found before anything was written."""


class BackgroundSave:
    """Saves states in a store, one at a time, on a thread that ends with the process in any case.

    The methods are for one thread; meanwhile, the store is for nothing else.
    """

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._thread: threading.Thread | None = None
        self._outcome: Outcome | None = None

    @property
    def is_busy(self) -> bool:
        """True from `start` until the outcome is taken."""
        return self._thread is not None

    def start(self, state: Mapping[str, Any]) -> None:
        """Starts to save a state, which must not change until the outcome is taken, as that of the one before was."""
        assert self._thread is None, "one at a time"
        self._thread = threading.Thread(target=self._save, args=(state,), name="checkpoint", daemon=True)
        self._thread.start()

    def take(self, *, wait: bool) -> Outcome | None:
        """Returns the outcome of the started save, once; None if there is none yet. wait: blocks until there is one."""
        if self._thread is not None and wait:
            self._thread.join()
        if self._thread is None or self._thread.is_alive():
            return None
        outcome, self._thread, self._outcome = self._outcome, None, None
        return outcome

    def _save(self, state: Mapping[str, Any]) -> None:
        torch.set_num_threads(torch.get_num_threads())  # OpenMP keeps this number for each thread
        started_at = time.monotonic()
        result: Saved | Exception | str
        try:
            result = not_finite_in(state["learner"]) or self._store.save(state)
        except Exception as error:
            result = error
        self._outcome = Outcome(state["step"], time.monotonic() - started_at, result)
