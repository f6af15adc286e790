"""The native actor pool of KubeBeast's learner."""

from kubebeast_native._core import (
    PROTOCOL_MINOR,
    PROTOCOL_VERSION,
    ActorPool,
    ClosedError,
    EnvSpec,
    Episode,
    Histogram,
    InferenceBatch,
    LeafSpec,
    RolloutBatch,
    StepTrace,
    StreamEvent,
    StreamInfo,
)

__all__ = [
    "PROTOCOL_MINOR",
    "PROTOCOL_VERSION",
    "ActorPool",
    "ClosedError",
    "EnvSpec",
    "Episode",
    "Histogram",
    "InferenceBatch",
    "LeafSpec",
    "RolloutBatch",
    "StepTrace",
    "StreamEvent",
    "StreamInfo",
]
