"""The native actor pool of KubeBeast's learner."""

from kubebeast_native._core import (
    PROTOCOL_VERSION,
    ActorPool,
    ClosedError,
    EnvSpec,
    Episode,
    InferenceBatch,
    LeafSpec,
    RolloutBatch,
)

__all__ = [
    "PROTOCOL_VERSION",
    "ActorPool",
    "ClosedError",
    "EnvSpec",
    "Episode",
    "InferenceBatch",
    "LeafSpec",
    "RolloutBatch",
]
