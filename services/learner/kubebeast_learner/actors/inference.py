"""Inference threads, which answer batches of rows with sampled actions."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.rollout import to_device, to_host
from kubebeast_learner.machine import priority
from kubebeast_learner.machine.out_of_memory import is_out_of_memory
from kubebeast_learner.models import Model, ModelInputs, ModelOutput
from kubebeast_learner.profiling.trace import span

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch

_POLL_MS = 100
"""Interval in milliseconds at which an idle thread checks for a stop."""


class InferencePool(Protocol):
    """The source of the rows: kubebeast_native.ActorPool."""

    def next_inference(self, timeout_ms: int) -> "InferenceBatch | None": ...


class InferenceError(RuntimeError):
    """An inference thread failed; the cause is the thread's own error."""


class CoreStateTable:
    """The core_state of every slot, float32 [max_envs, core_state_size].

    Workers share it: a slot is in one batch at a time. Rows of a new episode are zeroed by the model, not here.
    """

    def __init__(self, model: Model, max_envs: int, device: torch.device | str = "cpu") -> None:
        """device: device of the workers. If they use several devices, it must be the CPU: a state on it is complete
        before another worker gets the slot.
        """
        self._unpack, self._pack = model.unpack_core_state, model.pack_core_state
        self.device = torch.device(device)
        self._states = torch.zeros(max_envs, model.core_state_size, device=device)

    def step(self, model: Model, inputs: ModelInputs, slots: Tensor) -> tuple[ModelOutput, Tensor]:
        """Runs the model on rows [1, N] and stores their new states; also returns the states before, [N, S].

        slots: int64 [N], on the device of the table, as the returned states.
        """
        before = self._states[slots]
        output, core_state = model(inputs, self._unpack(before.to(inputs.reward.device)))
        # An observation too large for the weights spoils its own row, not all rows to the episode's end.
        packed = self._pack(core_state).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        self._states[slots] = packed.to(self.device)
        return output, before


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
    ) -> None:
        """core_states: None for models without a recurrent core. frames: None if the pool gives whole stacks.
        seed: seed of the action sampling, different for each worker.
        """
        super().__init__(name="inference", daemon=True)
        self.stopping = threading.Event()
        """Set by `stop`."""
        self._pool = pool
        self._weights = weights
        self._core_states = core_states
        self._frames = frames
        self._device = torch.device(device)
        self._generator = torch.Generator(self._device).manual_seed(seed)
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
        core_state: tuple[Tensor, ...] = ()
        with self._weights.acquire() as (model, version):
            inputs = self._inputs(batch, model)
            if self._core_states is None:
                output, _ = model(inputs, ())
            else:
                home = self._core_states.device
                output, before = self._core_states.step(model, inputs, to_device(batch.slots, home).long())
                # By index, not by a mask: the number of rows in a mask would have to be read from a GPU.
                starts = to_device(np.flatnonzero(batch.unroll_start), home)
                core_state = (before.index_select(0, starts),)
            policy_logits = output.policy_logits[0]
            drawn = model.distribution.sample(policy_logits, self._generator)
            action, record = model.distribution.squashed(drawn), model.distribution.record(policy_logits, drawn)
            on_host = to_host(action, record, output.baseline[0], *core_state)
        action, *others = on_host
        leaves, arrays = model.distribution.to_leaves(action), [tensor.numpy() for tensor in others]
        batch.reply(leaves, arrays[0], arrays[1], version, arrays[2] if core_state else None)

    def _inputs(self, batch: "InferenceBatch", model: Model) -> ModelInputs:
        last_action = model.distribution.from_leaves(batch.last_actions)
        return ModelInputs(
            observation=self._observation(batch, model),
            reward=to_device(batch.rewards, self._device).unsqueeze(0),
            last_action=to_device(last_action, self._device).unsqueeze(0),
            is_first=to_device(batch.is_first, self._device).unsqueeze(0),
            task=to_device(batch.task, self._device).unsqueeze(0) if model.num_tasks > 1 else None,
        )

    def _observation(self, batch: "InferenceBatch", model: Model) -> tuple[Tensor, ...]:
        if self._frames is not None:
            return tuple(leaf.unsqueeze(0) for leaf in self._frames.observe(batch))
        leaves = (to_device(leaf, self._device).unsqueeze(0) for leaf in batch.observation)
        return model.with_frames_first(leaves, axis=2)


@contextmanager
def _own_stream(device: torch.device) -> Iterator[None]:
    """Uses a high-priority stream for this thread on a GPU: actions do not queue behind the learner's kernels."""
    if device.type != "cuda":
        yield
        return
    with torch.cuda.stream(torch.cuda.Stream(device, priority=-1)):  # type: ignore[no-untyped-call]
        yield
