"""The way of the weights from the learner to the inference threads; neither ever waits for the other.

learner model --publish--> a replica nobody reads --swap--> current replica --acquire--> inference threads
"""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kubebeast_learner.models import Model
from kubebeast_learner.precision import PrecisionChoice, torso_dtype, use_channels_last


class WeightPublisher:
    """Replicas of the learner's model for inference, its torso in low precision where that is chosen.

    A replica is overwritten only when it is neither current nor read. So there are never more of them than concurrent
    readers plus two, and usually two.
    """

    def __init__(
        self,
        source: Model,
        *,
        device: torch.device | str = "cpu",
        precision: PrecisionChoice = "auto",
        version: int = 0,
    ) -> None:
        """Publishes `source` as it is under `version`. source may live on another device."""
        self._source = source
        self._device = torch.device(device)
        self._dtype = torso_dtype(precision, source, self._device)
        self._lock = threading.Lock()
        self._current = _Replica(source, self._dtype, self._device)
        self._current.load(source, version)
        self._replicas = [self._current]

    def publish(self, version: int) -> None:
        """Makes the source's present weights current. Called by the thread that updates the source."""
        replica = self._free_replica()
        replica.load(self._source, version)
        with self._lock:
            self._current = replica

    @contextmanager
    def acquire(self) -> Iterator[tuple[Model, int]]:
        """The newest replica and its version, unchanged until the context ends. From any thread; never blocks.

        On a GPU, whoever reads the model's outputs on the host inside the context has also waited for their kernels.
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
    def version(self) -> int:
        """The version that `acquire` would give."""
        with self._lock:
            return self._current.version

    @property
    def num_replicas(self) -> int:
        return len(self._replicas)

    def _free_replica(self) -> "_Replica":
        """One that is neither current nor read. Nobody can begin to read it, for readers begin with the current one."""
        with self._lock:
            for replica in self._replicas:
                if replica is not self._current and replica.num_readers == 0:
                    return replica
        self._replicas.append(_Replica(self._source, self._dtype, self._device))
        return self._replicas[-1]


class _Replica:
    def __init__(self, source: Model, dtype: torch.dtype, device: torch.device) -> None:
        self.model = copy.deepcopy(source).eval().requires_grad_(False)
        self.model.zero_grad()
        self.model.torso.to(dtype)
        use_channels_last(self.model, device)
        self.version = -1
        self.num_readers = 0
        self._loaded = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def load(self, source: Model, version: int) -> None:
        for mine, new in zip(self.model.parameters(), source.parameters(), strict=True):
            mine.copy_(new, non_blocking=True)
        self.version = version
        if self._loaded is not None:
            self._loaded.record()

    def wait_until_loaded(self) -> None:
        """Orders the current stream after the copy, which another stream made."""
        if self._loaded is not None:
            torch.cuda.current_stream().wait_event(self._loaded)
