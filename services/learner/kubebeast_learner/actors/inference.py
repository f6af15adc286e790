"""Inference threads, which answer batches of rows with sampled actions."""

import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

import torch

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.graph_runner import GraphRunner
from kubebeast_learner.actors.runner import Answer, EagerRunner, Runner
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.machine import priority
from kubebeast_learner.machine.cuda_graph import CaptureError
from kubebeast_learner.machine.out_of_memory import is_out_of_memory
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import span

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch

_log = logging.getLogger(__name__)

_POLL_MS = 100
"""Interval in milliseconds at which an idle thread checks for a stop."""


class InferencePool(Protocol):
    """The source of the rows: kubebeast_native.ActorPool."""

    def next_inference(self, timeout_ms: int) -> "InferenceBatch | None": ...


class InferenceError(RuntimeError):
    """An inference thread failed; the cause is the thread's own error."""


class InferenceWorker(threading.Thread):
    """One thread that runs the newest published weights on the pool's batches, from `start` to `stop`.

    Workers of one pool share its core states and its frames. The first error ends the thread; `raise_error` and `stop`
    raise it.
    """

    def __init__(
        self,
        pool: InferencePool,
        weights: WeightPublisher,
        *,
        core_states: CoreStateTable | None = None,
        frames: FrameTable | None = None,
        device: torch.device | str = "cpu",
        seed: int = 0,
        use_graphs: bool = False,
        compile: bool = False,
    ) -> None:
        """core_states: None for models without a recurrent core. frames: None if the pool gives whole stacks.
        seed: seed of the action sampling, different for each worker. use_graphs: runs the model by CUDA graphs; only
        on a GPU, with both tables on it. compile: compiles the convolutions of the graphs.
        """
        super().__init__(name="inference", daemon=True)
        self.stopping = threading.Event()
        """Set by `stop`."""
        self._pool = pool
        self._weights = weights
        self._device = torch.device(device)
        generator = torch.Generator(self._device).manual_seed(seed)
        self._eager = EagerRunner(self._device, generator, core_states, frames)
        self._runner: Runner = self._eager
        if use_graphs:
            drawing = torch.Generator(self._device).manual_seed(seed)
            self._runner = GraphRunner(self._device, drawing, core_states, frames, compile=compile)
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
            with span("inference"):
                self._answer(batch)

    def _answer(self, batch: "InferenceBatch") -> None:
        with self._weights.acquire() as (model, version):
            action, record, baseline, core_state = self._run_model(batch, model, version)
        leaves = model.distribution.to_leaves(action)
        before = None if core_state is None else core_state.numpy()
        batch.reply(leaves, record.numpy(), baseline.numpy(), version, before)

    def _run_model(self, batch: "InferenceBatch", model: Model, version: int) -> Answer:
        try:
            return self._runner.run(batch, model, version)
        except CaptureError as error:
            _log.warning("inference runs without CUDA graphs, as its model cannot be recorded: %s", error)
            self._runner = self._eager
            return self._runner.run(batch, model, version)


def _own_stream(device: torch.device) -> AbstractContextManager[object]:
    """Uses a high-priority stream for this thread on a GPU: actions do not queue behind the learner's kernels."""
    if device.type != "cuda":
        return nullcontext()
    return torch.cuda.stream(torch.cuda.Stream(device, priority=-1))  # type: ignore[no-untyped-call]
