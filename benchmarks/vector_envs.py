"""Speed of vector environments on one machine: Pong's 84x84 gray frames, four per action, in stacks of four.

    python -m benchmarks.vector_envs --seconds 2 --rounds 10

Compares FleetVectorEnv on env-servers of this machine with gymnasium's AsyncVectorEnv, Stable-Baselines3's
SubprocVecEnv and EnvPool, with random actions. In a round, they step in turn for some seconds each; the ratio is the
speed of one over AsyncVectorEnv's in the same round: the median over the rounds. The first three use the same frames
from gymnasium's wrappers; EnvPool has its own, alone and behind env-servers. One that cannot run here has the reason
instead of numbers.

All together need `pip install './services/envserver[atari,envpool]' opencv-python-headless stable-baselines3`.
"""

import contextlib
import dataclasses
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import tyro
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from benchmarks import report
from benchmarks.pong import FRAME_SKIP, FRAME_STACK, NOOP_MAX, make_pong
from benchmarks.turns import Player, Row, compare
from kubebeast_fleet import FleetVectorEnv

PONG, ENVPOOL = "benchmarks.pong:Pong84-v0", "envpool/Pong-v5"
ENVPOOL_KWARGS = f'{{"noop_max": {NOOP_MAX}, "frame_skip": {FRAME_SKIP}, "stack_num": {FRAME_STACK}}}'
NUM_ACTIONS = 6


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 2.0
    """Length of a measurement, in seconds."""
    rounds: int = 10
    """Measurements of each vector environment."""
    num_envs: tuple[int, ...] = (8, 32)
    """Numbers of environments that step together."""
    num_streams: int = 2
    """Streams of env-servers with several environments per stream."""


def make_async(stack: contextlib.ExitStack, num_envs: int) -> Callable[[Any], object]:
    return _stepping(stack, AsyncVectorEnv([make_pong] * num_envs))


def make_subproc(stack: contextlib.ExitStack, num_envs: int) -> Callable[[Any], object]:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = SubprocVecEnv([make_pong] * num_envs)
    stack.callback(envs.close)
    envs.reset()
    step: Callable[[Any], object] = envs.step
    return step


def make_envpool(stack: contextlib.ExitStack, num_envs: int) -> Callable[[Any], object]:
    import envpool

    kwargs = {"noop_max": NOOP_MAX, "frame_skip": FRAME_SKIP, "stack_num": FRAME_STACK}
    envs = envpool.make_gymnasium("Pong-v5", num_envs=num_envs, **kwargs)
    envs.reset()
    step: Callable[[Any], object] = envs.step
    return step


def make_fleet(
    stack: contextlib.ExitStack, num_envs: int, env: str, envs_per_stream: int, *flags: str
) -> Callable[[Any], object]:
    if env == ENVPOOL:
        import envpool  # noqa: F401 # if it is missing, raises before an env-server waits for it
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    address = f"unix:{folder}/fleet.sock"
    layout = [f"--num-streams={num_envs // envs_per_stream}", f"--envs-per-stream={envs_per_stream}"]
    command = [sys.executable, "-m", "kubebeast_envserver", f"--env={env}", f"--address={address}", *layout, *flags]
    server = subprocess.Popen([*command, "--log-level=error"])
    stack.callback(server.wait)
    stack.callback(server.terminate)
    return _stepping(stack, FleetVectorEnv(address, num_envs))


def _stepping(stack: contextlib.ExitStack, envs: VectorEnv[Any, Any, Any]) -> Callable[[Any], object]:
    stack.callback(envs.close)
    envs.reset()
    return envs.step


def contenders(num_envs: int, num_streams: int) -> dict[str, Callable[..., Callable[[Any], object]]]:
    """Returns a function for each contender that creates it; the first one is the reference."""
    several = num_envs // num_streams
    return {
        "AsyncVectorEnv": make_async,
        "SubprocVecEnv": make_subproc,
        "FleetVectorEnv, 1 a stream": partial(make_fleet, env=PONG, envs_per_stream=1),
        f"FleetVectorEnv, {several} a stream": partial(make_fleet, env=PONG, envs_per_stream=several),
        "EnvPool": make_envpool,
        f"FleetVectorEnv, {several} of EnvPool a stream": partial(_fleet_of_envpool, envs_per_stream=several),
    }


def _fleet_of_envpool(stack: contextlib.ExitStack, num_envs: int, envs_per_stream: int) -> Callable[[Any], object]:
    return make_fleet(stack, num_envs, ENVPOOL, envs_per_stream, f"--env-kwargs={ENVPOOL_KWARGS}")


def _random(step: Callable[[Any], object], random: np.random.Generator, num_envs: int) -> None:
    step(random.integers(NUM_ACTIONS, size=num_envs))


@contextlib.contextmanager
def players(num_envs: int, settings: Settings) -> Iterator[dict[str, Player | str]]:
    """Yields the player of each contender by name, or the reason why it cannot run."""
    made: dict[str, Player | str] = {}
    with contextlib.ExitStack() as stack:
        for name, make in contenders(num_envs, settings.num_streams).items():
            try:
                step = make(stack, num_envs)
            except (ImportError, gymnasium.error.Error) as error:
                made[name] = str(error)
            else:
                random = np.random.default_rng(1)
                made[name] = Player(partial(_random, step, random, num_envs), num_envs, settings.seconds)
        yield made


def measure(num_envs: int, settings: Settings) -> list[Row]:
    with players(num_envs, settings) as made:
        return compare(made, num_envs, settings.rounds)


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    rows = [row for num_envs in settings.num_envs for row in measure(num_envs, settings)]
    report.print_table(f"steps of Pong, {settings.rounds} rounds of {settings.seconds:g} s", rows)
    print("Results:", report.write_json("vector_envs", settings, {"rows": rows}))


if __name__ == "__main__":
    main()
