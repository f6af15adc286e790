"""What a training run consists of: its size and place, the shape of rollouts, which processes take part."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kubebeast_envserver.log import LogFormat, LogLevel
from kubebeast_learner.config.checks import require
from kubebeast_learner.config.learning import LossConfig, ModelConfig, OptimizerConfig, ReplayConfig
from kubebeast_learner.config.pool import PoolConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutConfig:
    unroll_length: int = 80
    """Transitions in an unroll (T)."""
    batch_size: int = 8
    """Unrolls in a training batch (B)."""

    def __post_init__(self) -> None:
        for name in ("unroll_length", "batch_size"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")


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
    log_level: LogLevel = "info"
    """Least severe level that is logged to the terminal; out.log of the run has info and above in any case."""
    log_format: LogFormat = "auto"
    """Of the log: auto is text on a terminal and JSON lines elsewhere."""
    learner_threads: int = 0
    """Threads of one torch operation on the CPU; 0 leaves a core to every local env-server, at least 1, at most 4."""
    profile: bool = False
    """Record 20 updates after the first 10 into trace.json of the run, for Perfetto or chrome://tracing."""
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
class TrainingConfig:
    """What every training has, wherever its environments run."""

    run: RunConfig = field(default_factory=RunConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnerConfig(TrainingConfig):
    """Everything `kubebeast learner` needs."""

    pool: PoolConfig = field(default_factory=PoolConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalEnvsConfig:
    """The environments of a training that hosts them on its own machine."""

    env: str = "PongNoFrameskip-v4"
    """Environment: a gymnasium id or module:Id."""
    num_actors: int = 32
    """Environments, over all processes."""
    preset: Literal["auto", "none", "atari-v4", "atari-v5"] = "auto"
    """Preprocessing: atari-v4 is TorchBeast's, atari-v5 that of Machado et al. 2018; auto goes by the id."""

    def require_one_each(self, name: str, num_processes: int) -> None:
        """ConfigError unless every one of num_processes, the value of field `name`, gets an environment."""
        require(num_processes >= 1, name, num_processes, "must be at least 1")
        reason = f"must be at least {name} ({num_processes}), one environment each"
        require(self.num_actors >= num_processes, "num_actors", self.num_actors, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalFleetConfig(LocalEnvsConfig):
    """The env-server processes that `kubebeast train` starts beside the learner."""

    num_servers: int = 3
    """Env-server processes; each carries its share of num_actors on one stream."""

    def __post_init__(self) -> None:
        self.require_one_each("num_servers", self.num_servers)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(LearnerConfig):
    """Everything `kubebeast train` needs."""

    pool: PoolConfig = field(default_factory=lambda: PoolConfig(address=""))
    fleet: LocalFleetConfig = field(default_factory=LocalFleetConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorProcessesConfig(LocalEnvsConfig):
    """The processes of `kubebeast mono` that step environments and run a copy of the model for them."""

    num_actor_processes: int = 0
    """Processes; each carries its share of num_actors. 0 means one for every core, at most num_actors."""
    num_buffers: int = 0
    """Unrolls in shared memory, rounded up to the same number for every environment; 0 means two for every environment,
    or more where a training batch needs more."""

    def __post_init__(self) -> None:
        self.require_one_each("num_actor_processes", self.num_actor_processes or 1)
        require(self.num_buffers >= 0, "num_buffers", self.num_buffers, "must not be negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class MonoConfig(TrainingConfig):
    """Everything `kubebeast mono` needs."""

    actors: ActorProcessesConfig = field(default_factory=ActorProcessesConfig)
