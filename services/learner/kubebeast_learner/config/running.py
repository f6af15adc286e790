"""Settings of training runs: size, devices and processes."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from kubebeast_common.access.places import require_place
from kubebeast_common.cli.settings import HIDDEN
from kubebeast_common.log import LogFormat, LogLevel
from kubebeast_common.spec.limits import MAX_INFO_CHARACTERS, MAX_LOG_INFO, MAX_RUN_BYTES
from kubebeast_common.spec.log_info import is_key
from kubebeast_learner.config.checks import (
    JsonObject,
    require,
    require_at_least,
    require_classes,
    require_evaluator,
    require_local,
    require_positive,
    require_seed,
)
from kubebeast_learner.config.environments import MakingConfig
from kubebeast_learner.config.episodes.curriculum import CurriculumConfig
from kubebeast_learner.config.episodes.opponents import OpponentsConfig
from kubebeast_learner.config.episodes.tasks import TasksConfig
from kubebeast_learner.config.learning import (
    LossConfig,
    ModelConfig,
    OptimizerConfig,
    PassesConfig,
    ReplayConfig,
    RolloutConfig,
)
from kubebeast_learner.config.pool import PoolConfig, SharingConfig
from kubebeast_learner.config.ranks import RanksConfig
from kubebeast_learner.config.recipes import NO_RECIPE, RecipeChoice
from kubebeast_runs.trackers.services import NAMES as SERVICES

_HTTP_URL = re.compile(r"https?://[\w.-]+(:\d+)?(/[^\s#]*)?|https?://\[[\da-fA-F:.]+\](:\d+)?(/[^\s#]*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """Name, length, devices and output of a run."""

    xpid: str = ""
    """Name of the run; an existing run is resumed. If empty, the name is made from the date."""
    savedir: str = "~/logs/kubebeast"
    """Folder that holds the runs, or the URL of a bucket: s3://, gs:// or az://. Each run writes to savedir/xpid."""
    init_from: str = ""
    """Weights that a new run begins with, as far as its layers have the same names and shapes: a run, with @step for an
    older checkpoint or @best for the best one, or a file. An existing run is resumed with its own."""
    fork_from: str = ""
    """Run, as for init_from, that a new run goes on with: its weights, optimizer, statistics and steps."""
    total_steps: int = 100_000
    """Env-steps (decisions of the agent) to train for."""
    schedule_steps: int | None = None
    """Env-steps over which the schedules of the learning rate and of the entropy cost extend; None means
    total_steps."""
    stop_at_return: float | None = None
    """End the run earlier if the mean return of the newest 100 episodes is at least this; of several tasks, of each."""
    max_hours: float | None = None
    """End the run earlier if it has trained for this many hours, those before a resume included."""
    seed: int = 1
    """Seed of the model's initialization, of action sampling and of the environments."""
    device: str = "auto"
    """Device of the learner: auto is cuda if available, else cpu."""
    disable_checkpoint: bool = False
    """Write no checkpoints."""
    checkpoint_interval_minutes: float = 10.0
    """Time between checkpoints, in minutes."""
    keep_checkpoints: int = 3
    """Number of newest checkpoints that are kept; older ones are deleted."""
    keep_best: int = 0
    """Number of best checkpoints of the run that are kept as well."""
    best_by: Literal["training", "evaluation"] = "training"
    """Score of a checkpoint: the mean return of the newest 100 episodes of its training, then over tasks; or the mean
    return of the episodes for which kubebeast eval --follow has played it. Of equal ones, the newer is the better."""
    best_evaluator: str = ""
    """Name of the evaluator (eval --follow) that decides if best_by is evaluation; empty is the one without a name, or
    the only one."""
    node_notice: str = ""
    """Notices that the node is about to go, after which a checkpoint is saved at once: aws, aws-rebalance, azure or
    gcp, or a URL or a file, which is polled. Empty: none."""
    log_interval_s: float = 5.0
    """Time between two rows of logs.csv and between two JSON progress lines, in seconds."""
    progress: Literal["auto", "table", "json", "none"] = "auto"
    """Progress display: auto is a live table on a terminal and JSON lines elsewhere."""
    tracker: tuple[str, ...] = ()
    """Services that receive the rows of logs.csv as the run goes on, of wandb, mlflow and trackio, and trackers of your
    own, module:Class each."""
    tracker_options: JsonObject = "{}"
    """JSON object: for each name of tracker, an object with the options of the service, or the arguments of the class,
    by name."""
    callback: tuple[str, ...] = ()
    """Callbacks of your own, module:Class each, which the learner calls at updates, ends of episodes, checkpoints and
    at its end."""
    callback_options: JsonObject = "{}"
    """JSON object: for each module:Class of callback, an object with the arguments of its class, by name."""
    record: Path | None = None
    """Folder for a recording: the batches of all updates, to train on again (learner --from-recording) and to export
    (export-data). A resumed run continues it."""
    record_shard_mib: int = 16
    """Size of a file of the recording, in MiB; its last batches may wait in memory for that long, or until the next
    checkpoint."""
    record_max_gib: float = 0.0
    """Size of the recording, in GiB, from which its oldest files are deleted; 0 sets no limit."""
    log_info: tuple[str, ...] = ()
    """Keys of numbers in the environments' info, e.g. success; achievements/wood is in a nested mapping. The mean over
    the last steps of the newest 100 episodes is logged as info/KEY."""
    log_level: LogLevel = "info"
    """Least severe level that is logged to the terminal; out.log of the run always has info and above."""
    log_format: LogFormat = "auto"
    """Format of the log: auto is text on a terminal and JSON lines elsewhere."""
    learner_threads: int = 0
    """Threads of one torch operation on the CPU; 0 leaves one core for every local env-server, at least 1 and at most 4
    threads, and is 1 if the device is a GPU or the model is small."""
    stop_status: int = 0
    """Exit status after SIGTERM or SIGHUP before the end of the run. Batch systems take 0 for the end of the run; after
    another one, such as 143 (128 + SIGTERM) in the Jobs of the chart, they start it again."""
    wait_for_run: bool = False
    """Wait while another process trains the run, e.g. a predecessor that writes its last checkpoint; without it, that
    is an error."""
    profile: bool = False
    """Record 20 updates after the first 10 to trace.json of the run, for Perfetto or chrome://tracing."""
    compile: Literal["auto", "on", "off"] = "auto"
    """Use of torch.compile for the update, and for convolutions of inference in CUDA graphs: auto compiles on a GPU if
    there are convolutions or no CUDA graphs, and no LSTM; a CPU gains nothing."""
    cuda_graphs: Literal["auto", "on", "off"] = "auto"
    """Use of CUDA graphs for updates and inference on a GPU: auto uses them unless code of your own takes part."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Arithmetic of the convolutional networks: auto is bf16 if the hardware is faster with it."""
    deterministic: bool = False
    """Use only operations that repeat their results digit by digit, for repeatable runs on a GPU; PyTorch warns if one
    has no such form. A CPU repeats its results in any case."""

    def __post_init__(self) -> None:
        require_seed(self.seed)
        require_place("savedir", self.savedir)
        require(not (self.fork_from and self.init_from), "fork_from", self.fork_from, "init_from is given as well")
        require_local(self, "record")
        require_at_least(1, self, "total_steps", "keep_checkpoints", "record_shard_mib")
        require_at_least(0, self, "learner_threads", "record_max_gib", "keep_best")
        require_evaluator("best_evaluator", self.best_evaluator)
        require(0 <= self.stop_status <= 255, "stop_status", self.stop_status, "must be from 0 to 255")
        require_positive(self, "checkpoint_interval_minutes", "log_interval_s", "max_hours", "schedule_steps")
        require_classes("tracker", self.tracker, self.tracker_options, *SERVICES)
        for name in self.tracker:
            require(self.tracker.count(name) == 1, "tracker", name, "is given twice")
        require_classes("callback", self.callback, self.callback_options)
        self._check_log_info()
        self._check_node_notice()
        is_plain = "/" not in self.xpid and self.xpid not in (".", "..", "latest")
        require(is_plain, "xpid", self.xpid, "must be a plain name, it becomes a folder")
        is_tellable = len(self.xpid.encode(errors="replace")) <= MAX_RUN_BYTES and self.xpid.isprintable()
        reason = f"must be printable and of at most {MAX_RUN_BYTES} bytes, it becomes a folder"
        require(is_tellable, "xpid", self.xpid, reason)

    def _check_node_notice(self) -> None:
        if not self.node_notice:
            return
        require(not self.disable_checkpoint, "node_notice", self.node_notice, "disable_checkpoint is set")
        if "://" in self.node_notice:
            is_url = _HTTP_URL.fullmatch(self.node_notice) is not None
            require(is_url, "node_notice", self.node_notice, "must be http://... or https://..., without a password")

    def _check_log_info(self) -> None:
        require(len(self.log_info) <= MAX_LOG_INFO, "log_info", self.log_info, f"must have at most {MAX_LOG_INFO} keys")
        for key in self.log_info:
            reason = f"must have 1 to {MAX_INFO_CHARACTERS} printable ASCII characters"
            require(is_key(key), "log_info", key, reason)
            require(self.log_info.count(key) == 1, "log_info", key, "is given twice")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """Settings of every training, with local or remote environments."""

    recipe: Annotated[RecipeChoice, tyro.conf.Fixed, tyro.conf.Suppress] = field(
        default=NO_RECIPE, metadata=HIDDEN, compare=False
    )

    run: RunConfig = field(default_factory=RunConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    tasks: TasksConfig = field(default_factory=TasksConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    opponents: OpponentsConfig = field(default_factory=OpponentsConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    passes: PassesConfig = field(default_factory=PassesConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)

    @property
    def steps_per_batch(self) -> int:
        """Env-steps that a training batch counts for if no episode ends in it."""
        return self.rollout.unroll_length * self.replay.num_fresh(self.rollout.batch_size)

    @property
    def user_code(self) -> list[tuple[str, str]]:
        """Pairs of setting and module:object for all code of the user's own."""
        names = [("model", self.model.model), ("loss", self.loss.loss), ("optimizer", self.optimizer.optimizer)]
        names += [("encoder", name) for name in self.model.encoders.values()]
        return [(setting, name) for setting, name in names if ":" in name]


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetTrainingConfig(TrainingConfig):
    """Settings of every training on env-servers, local or remote."""

    pool: PoolConfig = field(default_factory=PoolConfig)
    ranks: RanksConfig = field(default_factory=RanksConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteFleetConfig:
    """Remote env-servers of a training."""

    env: str = ""
    """Environment that a new run begins with, as its env-servers name it; env-servers of others may join after one of
    it has. Empty: the first environment that joins, or the first of several tasks. It selects the recipe."""
    from_recording: Path | None = None
    """Folder of a recording to train on, in place of env-servers: the run ends with it. No address is listened on or
    dialed, and nothing is served over HTTP."""
    recording_passes: int = 1
    """Times that the recording is trained on."""

    def __post_init__(self) -> None:
        require_local(self, "from_recording")
        require_at_least(1, self, "recording_passes")


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnerConfig(FleetTrainingConfig):
    """Settings of `kubebeast learner`."""

    fleet: RemoteFleetConfig = field(default_factory=RemoteFleetConfig)
    sharing: SharingConfig = field(default_factory=SharingConfig)

    def __post_init__(self) -> None:
        self.tasks.require_task(self.fleet.env)
        self.curriculum.require_fit(self.tasks, from_recording=self.fleet.from_recording)
        self.opponents.require_fit(self.tasks, self.curriculum, from_recording=self.fleet.from_recording)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalEnvsConfig(MakingConfig):
    """Environments of a training on its own machine."""

    env: str = "PongNoFrameskip-v4"
    """Environment: a gymnasium id or module:Id. Of several tasks, the one that selects the recipe and that eval plays;
    the first if omitted."""
    num_actors: int = 32
    """Number of environments over all processes; each agent of a multi-agent environment counts as one."""
    env_timeout_s: float = 120.0
    """Longest time that construction, a reset or a step of a process's environments may take, in seconds; then the
    process is replaced."""
    lag: int | None = None
    """Updates between the weights that play an unroll and the weights that it trains, always the same: two runs with
    one seed are then the same, whatever the number of processes and the load. Without it, unrolls are played with the
    newest weights."""

    def __post_init__(self) -> None:
        MakingConfig.__post_init__(self)
        require_positive(self, "env_timeout_s")
        require_at_least(0, self, *(["lag"] if self.lag is not None else []))

    def require_one_each(self, name: str, num_processes: int) -> None:
        """Raises ConfigError unless each of num_processes, the value of field `name`, gets an environment."""
        require(num_processes >= 1, name, num_processes, "must be at least 1")
        reason = f"must be at least {name} ({num_processes}), one environment each"
        require(self.num_actors >= num_processes, "num_actors", self.num_actors, reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalFleetConfig(LocalEnvsConfig):
    """Env-server processes that `kubebeast train` starts beside the learner."""

    num_servers: int = 3
    """Number of env-server processes; each runs its share of num_actors on one stream."""
    num_learners: int = 1
    """Learners that train one model together, each with its share of the env-servers and its own GPU; batch_size
    applies to each of them."""

    def __post_init__(self) -> None:
        LocalEnvsConfig.__post_init__(self)
        require_at_least(1, self, "num_learners")
        self.require_one_each("num_servers", self.num_servers)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(FleetTrainingConfig):
    """Settings of `kubebeast train`."""

    pool: PoolConfig = field(default_factory=lambda: PoolConfig(address=""))
    fleet: LocalFleetConfig = field(default_factory=LocalFleetConfig)

    def __post_init__(self) -> None:
        self.tasks.require_task(self.fleet.env)
        self.curriculum.require_fit(self.tasks, lag=self.fleet.lag)
        self.opponents.require_fit(
            self.tasks, self.curriculum, lag=self.fleet.lag, num_learners=self.fleet.num_learners
        )
        self._check_lag()
        least = self.tasks.num_tasks * self.fleet.num_learners
        reason = f"must be at least {least}, one for each task" + " of each learner" * (self.fleet.num_learners > 1)
        require(self.fleet.num_servers >= least, "num_servers", self.fleet.num_servers, reason)

    def _check_lag(self) -> None:
        lag, several = self.fleet.lag, "one learner with one task repeats its runs"
        require(lag is None or self.fleet.num_learners == 1, "num_learners", self.fleet.num_learners, several)
        require(lag is None or not self.tasks.task_shares, "task_shares", self.tasks.task_shares, several)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorProcessesConfig(LocalEnvsConfig):
    """Processes of `kubebeast mono`, which step environments and run a copy of the model for them."""

    num_actor_processes: int = 0
    """Number of processes; each runs its share of num_actors. 0 means one for every core, at most num_actors."""
    num_buffers: int = 0
    """Unrolls in shared memory, rounded up to the same number for every environment; 0 means two for every environment,
    or more if a training batch needs more."""

    def __post_init__(self) -> None:
        LocalEnvsConfig.__post_init__(self)
        self.require_one_each("num_actor_processes", self.num_actor_processes or 1)
        require_at_least(0, self, "num_buffers")


@dataclass(frozen=True, kw_only=True, slots=True)
class MonoConfig(TrainingConfig):
    """Settings of `kubebeast mono`."""

    actors: ActorProcessesConfig = field(default_factory=ActorProcessesConfig)

    def __post_init__(self) -> None:
        reason = "kubebeast mono plays one environment, kubebeast train several tasks on one machine"
        require(not self.tasks.task_shares, "task_shares", self.tasks.task_shares, reason)
        self.curriculum.require_fit(self.tasks, lag=self.actors.lag)
        reason = "kubebeast mono plays all agents with the policy that learns, kubebeast train also with others"
        require(not self.opponents.opponents, "opponents", self.opponents.opponents, reason)
