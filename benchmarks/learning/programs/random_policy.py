"""A policy that draws each action uniformly."""

import json
import sys
from pathlib import Path
from typing import Any

from gymnasium.wrappers import RecordEpisodeStatistics

from benchmarks.learning.programs.environments import make_env
from benchmarks.learning.programs.log import Log

STEPS_PER_ROW = 1000


def play(settings: dict[str, Any]) -> None:
    """Plays once. settings: env, inputs, seed, steps and folder."""
    log, seed = Log(Path(settings["folder"])), settings["seed"]
    env = RecordEpisodeStatistics(make_env(settings["env"], settings["inputs"]))
    env.action_space.seed(seed)
    env.reset(seed=seed)
    for step in range(1, settings["steps"] + 1):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            log.add(float(info["episode"]["r"]))
            env.reset()
        if step % STEPS_PER_ROW == 0 or step == settings["steps"]:
            log.write(step)


if __name__ == "__main__":
    play(json.loads(sys.argv[1]))
