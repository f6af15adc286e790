"""Settings of a scale measurement."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    num_envs: int = 4000
    """Environments of all streams together."""
    num_streams: int = 0
    """Number of streams, each with its own connection; 0 for one per environment."""
    env_ms: float = 100.0
    """Mean time of an environment's step, in milliseconds; single steps take from 0.5 to 1.5 times as long."""
    seconds: float = 60.0
    """Length of the measurement, in seconds."""
    warmup_seconds: float = 20.0
    """Warm-up with all streams before the measurement, in seconds."""
    unroll_length: int = 5
    """Unroll length, by default that of the recipe for Atari."""
    batch_size: int = 32
    max_learner_queue_size: int = 0
    """Setting of `kubebeast learner`."""
    min_inference_rows: int = 1
    """Setting of `kubebeast learner`."""
    num_processes: int = 2
    """Processes that replay the streams."""
    game: str = "pong"
    """Atari game of the frames."""

    @property
    def streams(self) -> int:
        return self.num_streams or self.num_envs

    @property
    def envs_per_stream(self) -> int:
        return self.num_envs // self.streams
