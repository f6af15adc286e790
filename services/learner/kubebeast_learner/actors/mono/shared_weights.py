"""Transfer of the weights from the learner to the actor processes, through shared memory."""

import torch

from kubebeast_learner.actors.mono.shared_memory import require_shared_memory
from kubebeast_learner.actors.weights import copy_weights, make_replica, weights_of
from kubebeast_learner.algorithm.precision import PrecisionChoice
from kubebeast_learner.models import Model


class SharedWeights:
    """Replicas of the model in shared memory for the newest versions.

    Neither side waits. An actor that is still computing with a version after `num_replicas` more are published computes
    with a mixture of both; the policy_logits that it stores are those it acted by, so V-trace's importance weights stay
    right.
    """

    def __init__(self, source: Model, precision: PrecisionChoice, version: int, num_replicas: int = 2) -> None:
        """Raises ConfigError if the shared memory is too small."""
        cpu = torch.device("cpu")
        tensors = [*source.parameters(), *source.buffers()] * num_replicas
        sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
        what = f"{num_replicas} copies of the model's weights"
        require_shared_memory(sizes, what, "hidden_sizes, take a smaller model")
        self._replicas = [make_replica(source, precision, cpu).share_memory() for _ in range(num_replicas)]
        self._version = torch.tensor([version]).share_memory_()  # type: ignore[no-untyped-call]
        for replica in self._replicas:
            copy_weights(weights_of(source), weights_of(replica))

    def publish(self, source: Model, version: int) -> None:
        """Makes the weights of `source` current. Only the learner calls this, with rising versions."""
        copy_weights(weights_of(source), weights_of(self.at(version)))
        self._version[0] = version

    @property
    def version(self) -> int:
        """The newest version."""
        return int(self._version)

    def current(self) -> tuple[Model, int]:
        """Returns the newest replica and its version, in any process."""
        version = self.version
        return self.at(version), version

    def at(self, version: int) -> Model:
        """Returns the replica of one of the `num_replicas` newest versions, in any process."""
        return self._replicas[version % len(self._replicas)]
