"""Stacks of frames for inference, made on the device from frames that are transferred once each."""

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
    """Returns True if the native pool should send each frame once, for stacks made on the device.

    That saves three quarters of the bytes of stacks of four on a GPU's bus and in host memory; on a CPU the pool makes
    the stacks fastest. Several inference devices would need each other's newest frames.
    """
    return learner.type == "cuda" and [device.type for device in inference] == ["cuda"]


class FrameTable:
    """The newest frames of every slot, for each leaf that is a stack of k. Thread-safe.

    A slot is in one batch at a time, and free again after the answer to its batch, which waits for a GPU; the first
    row of an episode brings its whole stack. So a slot can pass to another environment without notice.
    """

    def __init__(self, observation: Sequence[LeafSpec], device: torch.device) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._stacked = [index for index, leaf in enumerate(observation) if leaf.frame_stack > 1]
        self._rings = [
            torch.empty(0, *observation[index].row_shape, dtype=getattr(torch, observation[index].dtype), device=device)
            for index in self._stacked
        ]
        """[slots, k, *shape] per stacked leaf; a slot's newest frame replaces its oldest one."""
        self._steps = torch.zeros(0, dtype=torch.int64, device=device)
        """[slots]: steps since the first row of the episode; modulo k, the index of the oldest frame."""

    def __len__(self) -> int:
        """Number of slots with room in the table."""
        return len(self._steps)

    def observe(self, batch: "InferenceBatch") -> list[Tensor]:
        """Returns the observation of a batch of single frames on the device, [N, *row_shape] per leaf; keeps them.

        Asynchronous on a GPU, on the current stream; waits for the GPU if a slot lies beyond all earlier ones.
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
        self._wait_for_all_streams()  # other threads' streams may still write to the source
        self._steps = torch.cat([self._steps, self._steps.new_zeros(added)])
        self._rings = [torch.cat([ring, ring.new_zeros(added, *ring.shape[1:])]) for ring in self._rings]
        self._wait_for_all_streams()  # and go on with the copies

    def _wait_for_all_streams(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
