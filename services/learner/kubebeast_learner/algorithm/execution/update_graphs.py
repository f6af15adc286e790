"""Updates as CUDA graphs: one start for the hundreds of kernels of an update.

Started operation by operation, an update of a small network keeps the GPU idle for most of its time, and the
interpreter's lock from the threads of inference.
"""

import logging
from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import Rollout, layout_of, map_tensors, tensors_of, to_host
from kubebeast_learner.machine.cuda_graph import CaptureError, Recorder
from kubebeast_learner.machine.packed_tensors import copy_together

_log = logging.getLogger(__name__)

MAX_GRAPHS = 4
"""Number of layouts of batches that have a graph; batches of others are trained on eagerly."""
NUM_EAGER = 3
"""Eager updates of a layout before its graph: libraries choose their algorithms, the optimizer makes its state."""


class UpdateGraphs:
    """Graphs of one function that makes a whole update, one for each layout of batches. Not thread-safe."""

    def __init__(self, update: Callable[[Rollout], Tensor], recorder: Recorder) -> None:
        """update: changes the weights by a batch on the device and returns float32 [K], without waiting for the device.
        What it reads beside the batch must stay at its address.
        """
        self._update, self._recorder = update, recorder
        self._num_seen: dict[Hashable, int] = {}
        self._graphs: dict[Hashable, _Graph] = {}
        self._works = True

    def start(self, rollout: Rollout) -> Callable[[], list[float]] | None:
        """Starts an update by a graph and returns a function that waits for the device and returns its numbers.

        Returns None if the update has to be made eagerly, because the layout of the batch is new or the update cannot
        be recorded.
        """
        layout = layout_of(rollout)
        if layout not in self._graphs and not self._record(layout, rollout):
            return None
        return self._graphs[layout].start(rollout)

    def _record(self, layout: Hashable, rollout: Rollout) -> bool:
        if not self._works or len(self._graphs) == MAX_GRAPHS:
            return False
        self._num_seen[layout] = self._num_seen.get(layout, 0) + 1
        if self._num_seen[layout] <= NUM_EAGER:
            return False
        try:
            self._graphs[layout] = _Graph(self._update, rollout, self._recorder)
        except CaptureError as error:
            self._works = False
            _log.warning("updates run without CUDA graphs, as they cannot be recorded: %s", error)
            return False
        return True


class _Graph:
    """The graph for one layout, with the batch that it reads."""

    def __init__(self, update: Callable[[Rollout], Tensor], rollout: Rollout, recorder: Recorder) -> None:
        self._rollout = map_tensors(torch.clone, rollout)
        self._tensors = tensors_of(self._rollout)
        self._numbers: Tensor

        def work() -> None:
            self._numbers = update(self._rollout)

        self._start = recorder.record(work)

    def start(self, rollout: Rollout) -> Callable[[], list[float]]:
        copy_together(self._tensors, tensors_of(rollout), non_blocking=True)
        self._start()
        return lambda: to_host(self._numbers)[0].tolist()
