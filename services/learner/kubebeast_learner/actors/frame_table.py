"""Stacks of frames for inference, made on the device from frames that came to it once each."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import to_device
from kubebeast_learner.spec import LeafSpec

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch


def takes_single_frames(learner: torch.device, inference: Sequence[torch.device]) -> bool:
    """Whether the native pool should send frames once, for stacks that are made on the devices.

    That spares a GPU's bus and the host's memory three quarters of the bytes of stacks of four; on a CPU the pool makes
    the stacks fastest. Several devices of inference would have to know each other's newest frames.
    """
    return learner.type == "cuda" and [device.type for device in inference] == ["cuda"]


class FrameTable:
    """The newest frames of every slot, for each leaf that is a stack of k. Thread-safe.

    A slot is in one batch at a time, and free again when its batch was answered, for which a GPU has been waited for;
    the first row of an episode brings its whole stack. So nobody has to say when a slot has another environment.
    """

    def __init__(self, observation: Sequence[LeafSpec], device: torch.device) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._stacked = [index for index, leaf in enumerate(observation) if leaf.frame_stack > 1]
        self._rings = [
            torch.empty(0, *observation[index].row_shape, dtype=getattr(torch, observation[index].dtype), device=device)
            for index in self._stacked
        ]
        """[slots, k, *shape] a stacked leaf; a slot's newest frame takes the place of its oldest one."""
        self._steps = torch.zeros(0, dtype=torch.int64, device=device)
        """[slots]: since the first row of the episode; modulo k the place of the oldest frame."""

    def __len__(self) -> int:
        """Slots that there is room for."""
        return len(self._steps)

    def observe(self, batch: "InferenceBatch") -> list[Tensor]:
        """The observation of a batch of single frames, [N, *row_shape] a leaf, on the device; keeps its frames.

        Asynchronous on a GPU, on the current stream; a batch with a slot beyond all earlier ones waits for the GPU.
        """
        with self._lock:
            self._make_room(int(batch.slots.max()) + 1)
            slots = to_device(batch.slots, self._device).long()
            first = to_device(batch.slots[batch.is_first], self._device).long()
            self._steps[slots] += 1
            self._steps[first] = 0
            steps = self._steps[slots]
            observation = [to_device(leaf, self._device) for leaf in batch.observation]
            for index, ring in zip(self._stacked, self._rings, strict=True):
                k = ring.shape[1]
                ring[slots, (steps - 1) % k] = observation[index]
                ring[first] = to_device(batch.first_stacks[index], self._device)
                oldest_first = (steps.unsqueeze(1) + torch.arange(k, device=self._device)) % k
                observation[index] = ring[slots.unsqueeze(1), oldest_first]
            return observation

    def _make_room(self, num_slots: int) -> None:
        if num_slots <= len(self):
            return
        added = max(num_slots, 2 * len(self)) - len(self)
        self._wait_for_all_streams()  # other threads' streams may still write what is copied
        self._steps = torch.cat([self._steps, self._steps.new_zeros(added)])
        self._rings = [torch.cat([ring, ring.new_zeros(added, *ring.shape[1:])]) for ring in self._rings]
        self._wait_for_all_streams()  # and go on with the copies

    def _wait_for_all_streams(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
