"""What stepping costs in each backend: Pong's 84x84 grey frames, four an action, in stacks of four.

    python -m benchmarks.backends --seconds 2 --rounds 10

Every backend makes the rows that an env-server sends, with random actions and nobody to wait for. In a round each
steps for some seconds, one after the other. The ratio that counts is its speed over that of gymnasium's environments in
our own loop, in the same round: the median over the rounds. What cannot run here has the reason instead of numbers.

All of them need `pip install './services/envserver[atari,envpool]' opencv-python-headless`.
"""

import contextlib
import dataclasses
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import psutil
import tyro

from benchmarks import report
from benchmarks.pong import FRAME_SKIP, FRAME_STACK, NOOP_MAX, SCREEN_SIZE
from kubebeast_envserver.envs.factory import EnvironmentFailure, HostedEnv, make_vector_env

WARMUP_STEPS = 50
SINGLE, VECTOR = "benchmarks.pong:Pong84-v0", "benchmarks.pong:vector/Pong84-v0"
ALE = {
    "repeat_action_probability": 0.0,
    "noop_max": NOOP_MAX,
    "frameskip": FRAME_SKIP,
    "stack_num": FRAME_STACK,
    "img_height": SCREEN_SIZE,
    "img_width": SCREEN_SIZE,
    "grayscale": True,
    "maxpool": True,
}
ENVPOOL = {"noop_max": NOOP_MAX, "frame_skip": FRAME_SKIP, "stack_num": FRAME_STACK}


class Backend(NamedTuple):
    name: str
    env: str
    env_kwargs: dict[str, Any]


BACKENDS = (
    Backend("gymnasium, our loop", SINGLE, {}),
    Backend("SyncVectorEnv", VECTOR, {}),
    Backend("AsyncVectorEnv, B processes", VECTOR, {"vectorization_mode": "async"}),
    Backend("ALE, atari-v4", "PongNoFrameskip-v4", {}),
    Backend("vector/ALE, 1 thread", "vector/ALE/Pong-v5", {**ALE, "num_threads": 1}),
    Backend("vector/ALE, 2 threads", "vector/ALE/Pong-v5", {**ALE, "num_threads": 2}),
    Backend("EnvPool, 1 thread", "envpool/Pong-v5", ENVPOOL),
    Backend("EnvPool, 2 threads", "envpool/Pong-v5", {**ENVPOOL, "num_threads": 2}),
)
"""The first one is the reference."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 2.0
    """Length of a measurement, in seconds."""
    rounds: int = 10
    """Measurements of each backend."""
    num_envs: tuple[int, ...] = (8, 32)
    """B, environments that step together."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    backend: str
    num_envs: int
    steps_per_s: float | None = None
    """Median over the rounds."""
    cpu_us_per_step: float | None = None
    """Of all processes and threads; median."""
    ratio: float | None = None
    """Steps per second over the reference's in the same round; median."""
    ratio_lowest: float | None = None
    ratio_highest: float | None = None
    not_run: str = ""
    """Why."""


class Speed(NamedTuple):
    steps_per_s: float
    cpu_us_per_step: float


class Player:
    """One backend that plays on from measurement to measurement."""

    def __init__(self, env: HostedEnv, seconds: float) -> None:
        self.env = env
        self._seconds = seconds
        (action,) = env.spec_action
        random = np.random.default_rng(1)
        self._actions = itertools.cycle(
            [[random.integers(action.num_categories, size=env.num_envs)] for _ in range(256)]
        )
        env.reset()
        for _ in range(WARMUP_STEPS):
            env.step(next(self._actions))

    def measure(self) -> Speed:
        num_calls, cpu_s, started = 0, _cpu_s(), time.perf_counter()
        while time.perf_counter() - started < self._seconds:
            self.env.step(next(self._actions))
            num_calls += 1
        num_steps = num_calls * self.env.num_envs
        return Speed(num_steps / (time.perf_counter() - started), (_cpu_s() - cpu_s) / num_steps * 1e6)


def _cpu_s() -> float:
    """Of this process and its children so far: while one backend plays the others rest."""
    this = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (this, *this.children(recursive=True)))


@contextlib.contextmanager
def players(num_envs: int, seconds: float) -> Iterator[dict[str, Player | str]]:
    """Of each backend by its name, or why there is none."""
    made: dict[str, Player | str] = {}
    with contextlib.ExitStack() as stack:
        for name, env_id, env_kwargs in BACKENDS:
            try:
                env = make_vector_env(env_id, num_envs, env_kwargs=env_kwargs, seed=1, full_stacks=False)
                stack.callback(env.close)
                made[name] = Player(env, seconds)
            except (ValueError, EnvironmentFailure) as error:
                made[name] = str(error)
        yield made


def measure(num_envs: int, settings: Settings) -> list[Row]:
    with players(num_envs, settings.seconds) as made:
        reasons = {name: player for name, player in made.items() if isinstance(player, str)}
        playing = {name: player for name, player in made.items() if isinstance(player, Player)}
        rounds: list[dict[str, Speed]] = []
        for turn in range(settings.rounds):
            # In turns from both ends, so that what drifts on the machine falls on all.
            order = list(playing) if turn % 2 == 0 else list(playing)[::-1]
            rounds.append({name: playing[name].measure() for name in order})
    return [
        Row(backend=name, num_envs=num_envs, not_run=reasons[name])
        if name in reasons
        else summary(name, num_envs, rounds)
        for name in made
    ]


def summary(name: str, num_envs: int, rounds: Sequence[dict[str, Speed]]) -> Row:
    """Of one backend's rounds; without ratios where the reference has not run."""
    speeds = [each[name] for each in rounds]
    reference = BACKENDS[0].name
    ratios = [each[name].steps_per_s / each[reference].steps_per_s for each in rounds if reference in each]
    return Row(
        backend=name,
        num_envs=num_envs,
        steps_per_s=statistics.median(speed.steps_per_s for speed in speeds),
        cpu_us_per_step=statistics.median(speed.cpu_us_per_step for speed in speeds),
        ratio=statistics.median(ratios) if ratios else None,
        ratio_lowest=min(ratios, default=None),
        ratio_highest=max(ratios, default=None),
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    rows = [row for num_envs in settings.num_envs for row in measure(num_envs, settings)]
    report.print_table(f"steps of Pong by backend, {settings.rounds} rounds of {settings.seconds:g} s", rows)
    print("Results:", report.write_json("backends", settings, {"rows": rows}))


if __name__ == "__main__":
    main()
