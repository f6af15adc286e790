"""Batches of unrolls on their way from the actors to the learner's device.

actors -> pinned memory -> device: the next batch is copied while an update runs.
"""

from dataclasses import replace
from typing import NamedTuple

import torch

from kubebeast_learner.actors.base import Actors
from kubebeast_learner.algorithm.rollout import Rollout, tensors_of
from kubebeast_learner.machine.cuda_graph import eager
from kubebeast_learner.profiling.phases import PhaseTimes


class Uploads:
    """The batches of one learner in order, at most one of them ahead of its turn. Not thread-safe."""

    def __init__(self, actors: Actors, device: torch.device, phases: PhaseTimes) -> None:
        """device: device of the learner. phases: receives the durations of to_device."""
        self._actors, self._device, self._phases = actors, device, phases
        self._ahead: _Ahead | None = None
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def next(self, timeout_ms: int) -> Rollout | None:
        """Returns the next batch on the CPU, as `Actors.next_rollout`."""
        return self._actors.next_rollout(timeout_ms) if self._ahead is None else self._ahead.on_host

    def fetch(self) -> None:
        """Takes the next batch from the actors, if there is one, and starts its copies to the device."""
        rollout = None if self._ahead is not None else self._actors.next_rollout(0)
        if rollout is None:
            return
        with torch.cuda.stream(self._stream):
            on_device = self._upload(rollout)
            copied = None if self._stream is None else self._stream.record_event()
        self._ahead = _Ahead(rollout, on_device, copied)

    def on_device(self, rollout: Rollout) -> Rollout:
        """Returns a batch on the device with whole stacks, for work on the current stream.

        If it is the batch of `next`, that goes on with the one after it. The next batch must not be replaced by another
        one after `fetch`.
        """
        ahead = self._ahead
        if ahead is None or ahead.on_host is not rollout:
            return self._upload(rollout)
        self._ahead = None
        if ahead.copied is not None:
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(ahead.copied)
            blocks = {each.untyped_storage().data_ptr(): each for each in tensors_of(ahead.on_device)}
            for tensor in blocks.values():
                tensor.record_stream(stream)  # keeps its memory until the present work of this stream is done
        return ahead.on_device

    def _upload(self, rollout: Rollout) -> Rollout:
        with self._phases.measure("to_device"), eager(self._device):
            return replace(rollout, origin=None).to(self._device).stacked()


class _Ahead(NamedTuple):
    on_host: Rollout
    on_device: Rollout
    copied: torch.cuda.Event | None
    """Completion of the copies; None on a CPU."""
