"""What a training run consists of: its size and place, how rollouts are made, which processes take part."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kubebeast_learner.config.checks import require
from kubebeast_learner.config.learning import LossConfig, ModelConfig, OptimizerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutConfig:
    unroll_length: int = 80
    """Transitions in an unroll (T)."""
    batch_size: int = 8
    """Unrolls in a training batch (B)."""
    max_learner_queue_size: int = 0
    """Finished unrolls that may wait for the learner; 0 means 2 * batch_size. A full queue holds env-servers back."""
    min_partial_steps: int = 1
    """A stream's started unroll with fewer transitions than this is dropped when the stream ends."""
    num_inference_threads: int = 1
    """Threads that run the model for the env-servers."""
    min_inference_rows: int = 1
    """Rows an inference batch waits for, at most inference_timeout_ms long."""
    max_inference_rows: int = 256
    """Most rows in an inference batch."""
    inference_timeout_ms: int = 10
    """How long the oldest row waits for min_inference_rows, in milliseconds."""
    address: str = "127.0.0.1:4431"
    """Where the learner listens: "host:port" or "unix:/path". Empty, in `kubebeast train`: a private unix socket."""
    max_streams: int = 4096
    """Most env-server streams at a time."""
    max_envs: int = 16384
    """Most environments at a time."""
    max_message_mib: int = 64
    """Largest message accepted from an env-server, in MiB."""
    handshake_timeout_s: float = 10.0
    """How long a new stream may take to introduce itself, in seconds."""
    step_timeout_s: float = 60.0
    """How long a stream may take to step its environments before it is closed, in seconds."""

    def __post_init__(self) -> None:
        for name in ("unroll_length", "batch_size", "num_inference_threads", "min_inference_rows", "max_message_mib"):
            value = getattr(self, name)
            require(value >= 1, name, value, "must be at least 1")
        require(
            self.max_inference_rows >= self.min_inference_rows,
            "max_inference_rows",
            self.max_inference_rows,
            f"must be at least min_inference_rows ({self.min_inference_rows})",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    xpid: str = ""
    """Name of the run; an existing one is resumed. Empty makes one from the date."""
    savedir: Path = Path("~/logs/kubebeast")
    """Folder that holds the runs; each writes into savedir/xpid."""
    total_steps: int = 100_000
    """Env-steps (decisions of the agent) to train for."""
    seed: int = 1
    """Seed of the model's initialisation, of action sampling and of the environments."""
    device: str = "auto"
    """Where the learner computes: auto takes cuda where there is one, else cpu."""
    disable_checkpoint: bool = False
    """Write no checkpoints."""
    checkpoint_interval_minutes: float = 10.0
    """Time between checkpoints, in minutes."""
    keep_checkpoints: int = 3
    """Newest checkpoints that are kept; older ones are deleted."""
    log_interval_s: float = 5.0
    """Time between two rows of logs.csv and two JSON progress lines, in seconds."""
    progress: Literal["auto", "table", "json", "none"] = "auto"
    """What the terminal shows: auto is a live table on a terminal and JSON lines elsewhere."""
    learner_threads: int = 0
    """Threads of one torch operation on the CPU; 0 leaves a core to every local env-server, at least 1, at most 4."""
    compile: Literal["auto", "on", "off"] = "auto"
    """torch.compile for the update: auto does so on a GPU for models without an LSTM; on a CPU it gains nothing."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Arithmetic of the convolutional networks: auto is bf16 where the hardware has it."""

    def __post_init__(self) -> None:
        require(self.total_steps >= 1, "total_steps", self.total_steps, "must be at least 1")
        require(
            self.checkpoint_interval_minutes > 0,
            "checkpoint_interval_minutes",
            self.checkpoint_interval_minutes,
            "must be positive",
        )
        require(self.keep_checkpoints >= 1, "keep_checkpoints", self.keep_checkpoints, "must be at least 1")
        require(self.learner_threads >= 0, "learner_threads", self.learner_threads, "must not be negative")
        require(self.log_interval_s > 0, "log_interval_s", self.log_interval_s, "must be positive")
        require(
            "/" not in self.xpid and self.xpid not in (".", "..", "latest"),
            "xpid",
            self.xpid,
            "must be a plain name, it becomes a folder",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnerConfig:
    """Everything `kubebeast learner` needs."""

    run: RunConfig = field(default_factory=RunConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalFleetConfig:
    """The env-server processes that `kubebeast train` starts beside the learner."""

    env: str = "PongNoFrameskip-v4"
    """Environment: a gymnasium id or module:Id."""
    num_actors: int = 32
    """Environments, over all env-server processes."""
    num_servers: int = 3
    """Env-server processes; each carries its share of num_actors on one stream."""
    preset: Literal["auto", "none", "atari-v4", "atari-v5"] = "auto"
    """Preprocessing: atari-v4 is TorchBeast's, atari-v5 that of Machado et al. 2018; auto goes by the id."""

    def __post_init__(self) -> None:
        require(self.num_servers >= 1, "num_servers", self.num_servers, "must be at least 1")
        require(
            self.num_actors >= self.num_servers,
            "num_actors",
            self.num_actors,
            f"must be at least num_servers ({self.num_servers}), one environment each",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(LearnerConfig):
    """Everything `kubebeast train` needs."""

    rollout: RolloutConfig = field(default_factory=lambda: RolloutConfig(address=""))
    fleet: LocalFleetConfig = field(default_factory=LocalFleetConfig)
