"""What a training run consists of: its size and place, the shape of rollouts, which processes take part."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kubebeast_common.log import LogFormat, LogLevel
from kubebeast_learner.config.checks import require, require_at_least, require_positive, require_seed
from kubebeast_learner.config.environments import MakingConfig
from kubebeast_learner.config.learning import LossConfig, ModelConfig, OptimizerConfig, ReplayConfig
from kubebeast_learner.config.pool import PoolConfig
from kubebeast_learner.config.ranks import RanksConfig
from kubebeast_learner.config.tasks import TasksConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutConfig:
    """The shape of a training batch, [T, B]."""

    unroll_length: int = 80
    """Transitions in an unroll (T)."""
    batch_size: int = 8
    """Unrolls in a training batch (B)."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "unroll_length", "batch_size")


MAX_XPID_BYTES = 253
"""Env-servers receive no more characters of it, and file systems take 255."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """Which run it is, how long it lasts, where it computes, and what it tells of itself."""

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
        require_seed(self.seed)
        require_at_least(1, self, "total_steps", "keep_checkpoints")
        require_at_least(0, self, "learner_threads")
        require_positive(self, "checkpoint_interval_minutes", "log_interval_s")
        is_plain = "/" not in self.xpid and self.xpid not in (".", "..", "latest")
        require(is_plain, "xpid", self.xpid, "must be a plain name, it becomes a folder")
        is_tellable = len(self.xpid.encode(errors="replace")) <= MAX_XPID_BYTES and self.xpid.isprintable()
        reason = f"must be printable and of at most {MAX_XPID_BYTES} bytes, it becomes a folder"
        require(is_tellable, "xpid", self.xpid, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """What every training has, wherever its environments run."""

    run: RunConfig = field(default_factory=RunConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    tasks: TasksConfig = field(default_factory=TasksConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)

    @property
    def steps_per_batch(self) -> int:
        """Env-steps that a training batch counts for where no episode ends in it."""
        return self.rollout.unroll_length * self.replay.num_fresh(self.rollout.batch_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetTrainingConfig(TrainingConfig):
    """What every training on env-servers has, wherever they run."""

    pool: PoolConfig = field(default_factory=PoolConfig)
    ranks: RanksConfig = field(default_factory=RanksConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteFleetConfig:
    """The env-servers of a training that run elsewhere."""

    env: str = ""
    """Environment that a new run begins with, as its env-servers name it; those of others may join once one of it has.
    Empty: whichever joins first, of several tasks the first. The recipe goes by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnerConfig(FleetTrainingConfig):
    """Everything `kubebeast learner` needs."""

    fleet: RemoteFleetConfig = field(default_factory=RemoteFleetConfig)

    def __post_init__(self) -> None:
        self.tasks.require_task(self.fleet.env)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalEnvsConfig(MakingConfig):
    """The environments of a training that hosts them on its own machine."""

    env: str = "PongNoFrameskip-v4"
    """Environment: a gymnasium id or module:Id. Of several tasks the one that the recipe goes by and that eval plays,
    the first where it is left out."""
    num_actors: int = 32
    """Environments, over all processes; of several agents in one each counts."""
    env_timeout_s: float = 120.0
    """Longest that making, a reset or a step of a process's environments may take, in seconds; then it is replaced."""

    def __post_init__(self) -> None:
        MakingConfig.__post_init__(self)
        require_positive(self, "env_timeout_s")

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
    num_learners: int = 1
    """Learners that train one model together, each with its share of the env-servers and a GPU of its own; batch_size
    is that of each."""

    def __post_init__(self) -> None:
        LocalEnvsConfig.__post_init__(self)
        require_at_least(1, self, "num_learners")
        self.require_one_each("num_servers", self.num_servers)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(FleetTrainingConfig):
    """Everything `kubebeast train` needs."""

    pool: PoolConfig = field(default_factory=lambda: PoolConfig(address=""))
    fleet: LocalFleetConfig = field(default_factory=LocalFleetConfig)

    def __post_init__(self) -> None:
        self.tasks.require_task(self.fleet.env)
        least = self.tasks.num_tasks * self.fleet.num_learners
        reason = f"must be at least {least}, one for each task" + " of each learner" * (self.fleet.num_learners > 1)
        require(self.fleet.num_servers >= least, "num_servers", self.fleet.num_servers, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorProcessesConfig(LocalEnvsConfig):
    """The processes of `kubebeast mono` that step environments and run a copy of the model for them."""

    num_actor_processes: int = 0
    """Processes; each carries its share of num_actors. 0 means one for every core, at most num_actors."""
    num_buffers: int = 0
    """Unrolls in shared memory, rounded up to the same number for every environment; 0 means two for every environment,
    or more where a training batch needs more."""

    def __post_init__(self) -> None:
        LocalEnvsConfig.__post_init__(self)
        self.require_one_each("num_actor_processes", self.num_actor_processes or 1)
        require_at_least(0, self, "num_buffers")


@dataclass(frozen=True, kw_only=True, slots=True)
class MonoConfig(TrainingConfig):
    """Everything `kubebeast mono` needs."""

    actors: ActorProcessesConfig = field(default_factory=ActorProcessesConfig)

    def __post_init__(self) -> None:
        reason = "kubebeast mono plays one environment, kubebeast train several tasks on one machine"
        require(not self.tasks.task_shares, "task_shares", self.tasks.task_shares, reason)
