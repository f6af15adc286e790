"""PPO of rl_games with its own configuration for Pong, in EnvPool."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import rl_games
import yaml
from rl_games.common.algo_observer import AlgoObserver
from rl_games.torch_runner import Runner

from benchmarks.learning.programs.log import Log
from benchmarks.learning.programs.threads import use_all_cores

CONFIG = Path(rl_games.__file__).parent / "configs" / "atari" / "ppo_pong_envpool.yaml"


class Returns(AlgoObserver):  # type: ignore[misc] # rl_games is only in the system's venv
    """An observer that logs the returns of the episodes that ended in each rollout."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log
        self._algorithm: Any = None

    def after_init(self, algo: Any) -> None:
        self._algorithm = algo

    def process_infos(self, infos: Any, done_indices: Any) -> None:
        for episode_return in self._algorithm.current_rewards[done_indices].flatten().tolist():
            self._log.add(episode_return)

    def after_print_stats(self, frame: int, epoch_num: int, total_time: float) -> None:
        self._log.write(int(frame))


def train(settings: dict[str, Any]) -> None:
    """Trains once. settings: env, seed, steps and folder; the only environment is Pong."""
    if not settings["env"].startswith("Pong"):
        raise ValueError(f"env = {settings['env']!r}: the configuration is for Pong")
    use_all_cores()
    params = yaml.safe_load(CONFIG.read_text())["params"]
    params["seed"] = settings["seed"]
    config = params["config"]
    steps_per_epoch = config["num_actors"] * config["horizon_length"]
    config |= {
        "device": "cpu",
        "device_name": "cpu",
        "max_epochs": math.ceil(settings["steps"] / steps_per_epoch),
        "score_to_win": math.inf,
        "train_dir": settings["folder"],
    }
    runner = Runner(Returns(Log(Path(settings["folder"]))))
    runner.load({"params": params})
    runner.run({"train": True, "play": False})


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
