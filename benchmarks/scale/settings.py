"""What is measured, for how long."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    num_envs: int = 4000
    """Environments, of all streams together."""
    num_streams: int = 0
    """Streams, each with a connection of its own; 0: one an environment."""
    env_ms: float = 100.0
    """Mean time of an environment's step, in milliseconds; single steps take from half to one and a half of it."""
    seconds: float = 60.0
    """Length of the measurement, in seconds."""
    warmup_seconds: float = 20.0
    """Time that all streams play before it begins, in seconds."""
    unroll_length: int = 5
    """As of the recipe for Atari."""
    batch_size: int = 32
    max_learner_queue_size: int = 0
    """As of `kubebeast learner`."""
    min_inference_rows: int = 1
    """As of `kubebeast learner`."""
    num_processes: int = 2
    """Processes that replay the streams."""
    game: str = "pong"
    """The Atari game whose frames travel."""

    @property
    def streams(self) -> int:
        return self.num_streams or self.num_envs

    @property
    def envs_per_stream(self) -> int:
        return self.num_envs // self.streams
