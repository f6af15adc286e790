"""The native actor pool of KubeBeast's learner, and an env-server's call to it."""

from kubebeast_native._core import (
    OPTIONS_MINOR,
    PROTOCOL_MINOR,
    PROTOCOL_VERSION,
    ActCall,
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
    "OPTIONS_MINOR",
    "PROTOCOL_MINOR",
    "PROTOCOL_VERSION",
    "ActCall",
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
