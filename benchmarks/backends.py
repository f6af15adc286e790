"""Speed of stepping in each backend: Pong's 84x84 gray frames, four per action, in stacks of four.

    python -m benchmarks.backends --seconds 2 --rounds 10

Every backend produces the rows that an env-server sends, with random actions and without waiting. In a round, the
backends step in turn for some seconds each. The ratio is the speed of a backend over that of gymnasium's environments
in our loop, in the same round: the median over the rounds. A backend that cannot run here has the reason instead of
numbers.

All backends together need `pip install './services/envserver[atari,envpool]' opencv-python-headless`.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tyro

from benchmarks import report
from benchmarks.pong import FRAME_SKIP, FRAME_STACK, NOOP_MAX, SCREEN_SIZE
from benchmarks.turns import Player, Row, compare
from kubebeast_envserver.envs.factory import EnvironmentFailure, HostedEnv, make_vector_env

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
"""Backends; the first one is the reference."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 2.0
    """Length of a measurement, in seconds."""
    rounds: int = 10
    """Measurements of each backend."""
    num_envs: tuple[int, ...] = (8, 32)
    """Numbers of environments that step together (B)."""


def _random_actions(env: HostedEnv) -> Iterator[list[Any]]:
    (action,) = env.spec_action
    random = np.random.default_rng(1)
    return itertools.cycle([[random.integers(action.num_categories, size=env.num_envs)] for _ in range(256)])


def _act(env: HostedEnv, actions: Iterator[list[Any]]) -> None:
    env.step(next(actions))


@contextlib.contextmanager
def players(num_envs: int, seconds: float) -> Iterator[dict[str, Player | str]]:
    """Yields the player of each backend by name, or the reason why it cannot run."""
    made: dict[str, Player | str] = {}
    with contextlib.ExitStack() as stack:
        for name, env_id, env_kwargs in BACKENDS:
            try:
                env = make_vector_env(env_id, num_envs, env_kwargs=env_kwargs, seed=1, full_stacks=False)
                stack.callback(env.close)
                env.reset()
                made[name] = Player(partial(_act, env, _random_actions(env)), num_envs, seconds)
            except (ValueError, EnvironmentFailure) as error:
                made[name] = str(error)
        yield made


def measure(num_envs: int, settings: Settings) -> list[Row]:
    with players(num_envs, settings.seconds) as made:
        return compare(made, num_envs, settings.rounds)


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    rows = [row for num_envs in settings.num_envs for row in measure(num_envs, settings)]
    report.print_table(f"steps of Pong by backend, {settings.rounds} rounds of {settings.seconds:g} s", rows)
    print("Results:", report.write_json("backends", settings, {"rows": rows}))


if __name__ == "__main__":
    main()
