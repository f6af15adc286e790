"""Settings of the measurement: loads, networks, and the learner's values of --compile and --precision."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_type_hints

from benchmarks import frames
from kubebeast_learner.config import RunConfig

Load = Literal["null", "atari"]
Network = Literal["shallow", "deep", "lstm"]

NETWORKS: dict[Network, tuple[str, ...]] = {
    "shallow": ("--model=shallow",),
    "deep": ("--model=deep",),
    "lstm": ("--model=shallow", "--use-lstm"),
}
"""Flags of the learner by network."""
MAX_PONG_S = 480.0


def _values_of(setting: str) -> tuple[str, ...]:
    """Returns all values except "auto", which stands for one of the others."""
    return tuple(value for value in get_args(get_type_hints(RunConfig)[setting]) if value != "auto")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 10.0
    """Length of each measurement, in seconds."""
    warmup_seconds: float = 5.0
    """Warm-up of a learner after its first updates, in seconds."""
    loads: tuple[Load, ...] = ("null", "atari")
    """Loads: null for recorded frames from clients that compute nothing, atari for real games of env-servers."""
    networks: tuple[Network, ...] = ("shallow", "deep", "lstm")
    """Networks; lstm is the shallow one with an LSTM."""
    precisions: tuple[str, ...] = _values_of("precision")
    compiles: tuple[str, ...] = ("on",)
    """Values of --compile."""
    graphs: tuple[str, ...] = _values_of("cuda_graphs")
    """Values of --cuda-graphs; "on" has no effect without a GPU."""
    inference_threads: tuple[int, ...] = (1,)
    """Numbers of inference threads."""
    device: str = "auto"
    """Device of the learner."""
    env: str = "PongNoFrameskip-v4"
    """Game of the load atari, and of --pong."""
    processes: int = 8
    """Number of env-servers, and of clients that send recorded frames."""
    envs: int = 256
    """Environments of all processes together; at most 32 for each client of recorded frames."""
    unroll_length: int = 20
    batch_size: int = 32
    pong: bool = False
    """Only train Pong, with the recipe of its game and the first of `compiles`, and draw its learning curve."""
    pong_seconds: float = MAX_PONG_S
    """Maximum time of the training of Pong after its first updates, in seconds; at most 480."""
    pong_return: float = 20.0
    """Mean return of the newest 100 games at which the training of Pong ends."""
    label: str = ""
    """Suffix of the result's name, to distinguish results of one day."""
    tiny: bool = False
    """Smoke test that takes seconds on two cores; the result has a separate name."""

    def __post_init__(self) -> None:
        if not 0 < self.pong_seconds <= MAX_PONG_S:
            raise ValueError(f"pong_seconds = {self.pong_seconds:g}: must lie in (0, {MAX_PONG_S:g}]")
        if self.envs < self.processes:
            raise ValueError(f"envs = {self.envs}: must be at least processes ({self.processes})")

    def scaled(self) -> "Settings":
        if not self.tiny:
            return self
        return dataclasses.replace(
            self,
            seconds=0.1,
            warmup_seconds=0.0,
            networks=("shallow",),
            precisions=("fp32",),
            compiles=("off",),
            graphs=("off",),
            processes=1,
            envs=4,
            unroll_length=3,
            batch_size=2,
            pong_seconds=2.0,
        )

    @property
    def envs_per_client(self) -> int:
        """Environments of each client of recorded frames."""
        return min(frames.NUM_ENVS, self.envs // self.processes)

    @property
    def log_interval_s(self) -> float:
        """Interval of the learner's log, and of the updates of its metrics."""
        return 0.1 if self.tiny else 0.5

    @property
    def name(self) -> str:
        """Name of the result."""
        return "gpu" + "-pong" * self.pong + "-tiny" * self.tiny + (f"-{self.label}" if self.label else "")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """The settings of one measured learner."""

    load: Load
    network: Network
    precision: str
    compile: str
    graphs: str
    inference_threads: int = 1

    def __str__(self) -> str:
        extras = ", compiled" * (self.compile == "on") + ", graphs" * (self.graphs == "on")
        extras += f", {self.inference_threads} inference threads" * (self.inference_threads > 1)
        return f"{self.load}, {self.network}, {self.precision}{extras}"

    def flags(self, settings: Settings) -> list[str]:
        """Returns the flags of the learner."""
        return [
            *NETWORKS[self.network],
            f"--precision={self.precision}",
            f"--compile={self.compile}",
            f"--cuda-graphs={self.graphs}",
            f"--num-inference-threads={self.inference_threads}",
            f"--device={settings.device}",
            f"--unroll-length={settings.unroll_length}",
            f"--batch-size={settings.batch_size}",
        ]


def variants(settings: Settings) -> Iterator[Variant]:
    axes: Any = {
        "load": settings.loads,
        "network": settings.networks,
        "precision": settings.precisions,
        "compile": settings.compiles,
        "graphs": settings.graphs,
        "inference_threads": settings.inference_threads,
    }
    for values in itertools.product(*axes.values()):
        yield Variant(**dict(zip(axes, values, strict=True)))
