"""Transfer of the weights from the learner to the inference threads; neither side waits for the other.

learner model --publish--> a replica without readers --swap--> current replica --acquire--> inference threads
"""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from kubebeast_learner.algorithm.precision import (
    PrecisionChoice,
    compute_in_float32,
    low_precision_dtype,
    use_channels_last,
)
from kubebeast_learner.machine.packed_tensors import copy_together
from kubebeast_learner.models import Model


class WeightPublisher:
    """Replicas of the learner's model for inference.

    A replica is overwritten only if it is neither current nor being read. So there are at most two more of them than
    concurrent readers, and usually two.
    """

    def __init__(
        self,
        source: Model,
        *,
        device: torch.device | str = "cpu",
        precision: PrecisionChoice = "auto",
        version: int = 0,
    ) -> None:
        """Publishes the present weights of `source` as `version`. source may live on another device."""
        self._source, self._weights = source, weights_of(source)
        self._device = torch.device(device)
        self._precision: PrecisionChoice = precision
        self._lock = threading.Lock()
        self._current = self._make_replica()
        self._current.load(self._weights, version)
        self._replicas = [self._current]

    def publish(self, version: int) -> None:
        """Makes the source's present weights current. Called by the thread that updates the source."""
        replica = self._free_replica()
        replica.load(self._weights, version)
        with self._lock:
            self._current = replica

    @contextmanager
    def acquire(self) -> Iterator[tuple[Model, int]]:
        """Yields the newest replica and its version, unchanged until the context ends. Thread-safe; never blocks.

        On a GPU, read the model's outputs on the host inside the context, which waits for their kernels.
        """
        with self._lock:
            replica = self._current
            replica.num_readers += 1
        try:
            replica.wait_until_loaded()
            yield replica.model, replica.version
        finally:
            with self._lock:
                replica.num_readers -= 1

    @property
    def num_replicas(self) -> int:
        return len(self._replicas)

    def _free_replica(self) -> "_Replica":
        """Returns a replica that is neither current nor read; no reader can begin with it."""
        with self._lock:
            for replica in self._replicas:
                if replica is not self._current and replica.num_readers == 0:
                    return replica
        self._replicas.append(self._make_replica())
        return self._replicas[-1]

    def _make_replica(self) -> "_Replica":
        return _Replica(make_replica(self._source, self._precision, self._device), self._device)


class RecentWeights:
    """Replicas of the learner's model for inference, of its newest versions."""

    def __init__(
        self,
        source: Model,
        num_replicas: int,
        *,
        device: torch.device,
        precision: PrecisionChoice = "auto",
        version: int = 0,
    ) -> None:
        """Keeps the present weights of `source` as `version`. source may live on another device."""
        self._weights = weights_of(source)
        self._replicas = [_Replica(make_replica(source, precision, device), device) for _ in range(num_replicas)]
        self.publish(version)

    def publish(self, version: int) -> None:
        """Keeps the source's present weights in place of those of the oldest version, which is not read any more."""
        self._replicas[version % len(self._replicas)].load(self._weights, version)

    def at(self, version: int) -> Model:
        """Returns the replica of one of the `num_replicas` newest versions. Thread-safe."""
        replica = self._replicas[version % len(self._replicas)]
        assert replica.version == version, f"version {replica.version} is in place of {version}"
        replica.wait_until_loaded()
        return replica.model


class _Replica:
    def __init__(self, model: Model, device: torch.device) -> None:
        self.model, self._weights = model, weights_of(model)
        self.version = -1
        self.num_readers = 0
        self._device = device
        self._loaded = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def load(self, source: list[Tensor], version: int) -> None:
        copy_weights(source, self._weights)
        self.version = version
        if self._loaded is not None:
            self._loaded.record(torch.cuda.current_stream(self._device))

    def wait_until_loaded(self) -> None:
        """Orders the current stream after the copy, which another stream made."""
        if self._loaded is not None:
            torch.cuda.current_stream(self._device).wait_event(self._loaded)


def make_replica(source: Model, precision: PrecisionChoice, device: torch.device) -> Model:
    """Returns a copy of `source` for inference on `device`, with its low_precision_part in the chosen precision."""
    compute_in_float32()
    replica = copy.deepcopy(source).eval().requires_grad_(False)
    replica.zero_grad()
    if replica.low_precision_part is not None:
        replica.low_precision_part.to(low_precision_dtype(precision, source, device))
    use_channels_last(replica, device)
    return replica


def weights_of(model: Model) -> list[Tensor]:
    """Returns the parameters and buffers. They stay the same tensors, so one walk through the modules is enough."""
    return [*model.parameters(), *model.buffers()]


def copy_weights(source: list[Tensor], replica: list[Tensor]) -> None:
    """Copies the `weights_of` a model into those of its replica; asynchronously if that is on a GPU."""
    if replica:
        copy_together(replica, source, non_blocking=replica[0].is_cuda)
