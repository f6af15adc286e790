"""Sample Factory's APPO with the settings of its Atari example."""

import json
import sys
from pathlib import Path
from typing import Any

from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.algo.utils.misc import EPISODIC
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner
from sf_examples.atari.atari_utils import ATARI_ENVS, make_atari_env
from sf_examples.atari.train_atari import parse_atari_args

from benchmarks.learning.programs.log import Log


class Rows(AlgoObserver):  # type: ignore[misc] # sample-factory is only in the system's venv
    """An observer that writes a row after every batch."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def on_training_step(self, runner: Runner, training_iteration_since_resume: int) -> None:
        self._log.write(sum(runner.env_steps.values()))


def make_env(*arguments: Any, **options: Any) -> Any:
    import ale_py  # noqa: F401 # registers the games, in each worker

    return make_atari_env(*arguments, **options)


def train(settings: dict[str, Any]) -> None:
    """Trains once. settings: env, seed, steps and folder."""
    name = next(spec.name for spec in ATARI_ENVS if spec.env_id == settings["env"])
    folder = Path(settings["folder"])
    log = Log(folder)
    register_env(name, make_env)
    arguments = [
        *("--algo=APPO", f"--env={name}", "--experiment=learning", f"--train_dir={folder}", "--device=cpu"),
        *(
            f"--seed={settings['seed']}",
            f"--train_for_env_steps={settings['steps']}",
            "--summaries_use_frameskip=False",
        ),
        *("--with_wandb=False", "--save_every_sec=100000"),
    ]
    _, runner = make_runner(parse_atari_args(arguments))

    def add_episode(_: Runner, message: dict[str, Any], __: int) -> None:
        log.add(float(message[EPISODIC]["reward"]))

    runner.register_episodic_stats_handler(add_episode)
    runner.register_observer(Rows(log))
    runner.init()
    runner.run()


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
