"""What is measured: loads, networks, and the values of --compile and --precision that a learner has."""

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
"""As flags of the learner."""
MAX_PONG_S = 480.0


def _values_of(setting: str) -> tuple[str, ...]:
    """All but auto, which is one of the others."""
    return tuple(value for value in get_args(get_type_hints(RunConfig)[setting]) if value != "auto")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 10.0
    """Length of each measurement, in seconds."""
    warmup_seconds: float = 5.0
    """Time that a learner trains after its first updates before it is measured, in seconds."""
    loads: tuple[Load, ...] = ("null", "atari")
    """Recorded frames that clients send for nothing, and real games of env-servers."""
    networks: tuple[Network, ...] = ("shallow", "deep", "lstm")
    """lstm is the shallow one with an LSTM."""
    precisions: tuple[str, ...] = _values_of("precision")
    compiles: tuple[str, ...] = _values_of("compile")
    device: str = "auto"
    """Of the learner."""
    env: str = "PongNoFrameskip-v4"
    """The game of the load atari, and of the recorded frames."""
    processes: int = 8
    """Env-servers, and clients that send recorded frames."""
    envs: int = 256
    """Environments, of all processes together; at most 32 for each client of recorded frames."""
    unroll_length: int = 20
    batch_size: int = 32
    pong: bool = False
    """Only train Pong, with --recipe atari, and draw its curve."""
    pong_seconds: float = MAX_PONG_S
    """How long Pong is trained, from its first update on; 480 at most."""
    label: str = ""
    """Part of the result's name, where one day has several."""
    tiny: bool = False
    """So small that it is done within seconds on two cores: to see that it works; the result has a name of its own."""

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
            processes=1,
            envs=4,
            unroll_length=3,
            batch_size=2,
            pong_seconds=2.0,
        )

    @property
    def envs_per_client(self) -> int:
        """Of recorded frames."""
        return min(frames.NUM_ENVS, self.envs // self.processes)

    @property
    def log_interval_s(self) -> float:
        """Of the learner, whose metrics follow as often."""
        return 0.1 if self.tiny else 0.5

    @property
    def name(self) -> str:
        """Of the result."""
        return "gpu" + "-pong" * self.pong + "-tiny" * self.tiny + (f"-{self.label}" if self.label else "")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One learner that is measured."""

    load: Load
    network: Network
    precision: str
    compile: str

    def __str__(self) -> str:
        return f"{self.load}, {self.network}, {self.precision}" + ", compiled" * (self.compile == "on")

    def flags(self, settings: Settings) -> list[str]:
        """Of the learner."""
        return [
            *NETWORKS[self.network],
            f"--precision={self.precision}",
            f"--compile={self.compile}",
            f"--device={settings.device}",
            f"--unroll-length={settings.unroll_length}",
            f"--batch-size={settings.batch_size}",
        ]


def variants(settings: Settings) -> Iterator[Variant]:
    axes: Any = (settings.loads, settings.networks, settings.precisions, settings.compiles)
    for load, network, precision, compile in itertools.product(*axes):
        yield Variant(load=load, network=network, precision=precision, compile=compile)
