"""Runs with a checkpoint, logs and scores, for tests of their publication."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.config import ModelConfig, MonoConfig, PublishConfig, RunConfig, TrainingConfig
from kubebeast_learner.publish.folder import write_folder
from kubebeast_learner.publish.scores import Score
from kubebeast_learner.run.initial_weights import find_state
from kubebeast_runs.log import RunLog
from kubebeast_runs.score_log import ScoreLog
from tests.unit.learner.play.playing import STEP, write_checkpoint

ENV = "CartPole-v1"
LEAVES = [Leaf("", "float32", (4,), 1, 0)], [Leaf("", "int64", (), 1, 2)]
SETTINGS = MonoConfig(
    run=RunConfig(seed=7, tracker=("mlflow",), tracker_options='{"mlflow": {"tracking_uri": "secret"}}')
)
RETURNS = [1.0, 2.0, 6.0]


def write_run(
    savedir: Path,
    *,
    returns: list[float] | None = None,
    env: str = ENV,
    base: TrainingConfig = SETTINGS,
    **settings: Any,
) -> Path:
    """Writes the run "run" with a checkpoint at STEP and rows up to twice that. `returns` are those of its training."""
    config = replace(base, **settings)
    with RunLog(savedir, "run") as log:
        log.record(as_settings(config), {"defaults": as_settings(MonoConfig()), "hardware": {"host": "secret-host"}})
        for step in range(0, 2 * STEP, STEP // 4):
            log.log({"step": step, "elapsed_s": step / 10, "mean_episode_return": step / 100})
    folder = savedir / "run"
    made = EnvConfig(preset="none", time_limit=200)
    write_checkpoint(folder, env, *LEAVES, ModelConfig(model="mlp"), env_config=made, settings=config)
    if returns is not None:
        path = folder / f"checkpoint-{STEP:012d}.pt"
        state = torch.load(path, weights_only=True)
        torch.save({**state, "stats": {"task_returns": {env: returns}}}, path)
    return folder


def add_score(folder: Path, step: int, mean: float, std: float, env: str = ENV) -> None:
    with ScoreLog(folder) as scores:
        scores.add(step, {"mean_return": mean, "std_return": std, "episodes": 20}, {"env": env, "mode": "greedy"})


def publish(source: object, out: Path, **settings: Any) -> tuple[list[str], list[Score]]:
    """Publishes as model "run"; returns the names of the files and the scores."""
    config = PublishConfig(run=str(source), **settings)
    return write_folder(config, find_state("run", config.run, config.savedir), out, "run")
