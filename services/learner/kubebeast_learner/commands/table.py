"""The learner's commands of `kubebeast`."""

from collections.abc import Sequence

from kubebeast_common.cli.command import Command
from kubebeast_learner.config import (
    CheckEnvConfig,
    EvalConfig,
    ExportConfig,
    ExportDataConfig,
    LearnerConfig,
    MonoConfig,
    PublishConfig,
    RenderConfig,
    TrainConfig,
    TrainingConfig,
    TuneConfig,
)
from kubebeast_learner.config.sources import layer_flags


def _command(summary: str, examples: Sequence[str], config_type: type, target: str, *, plays: bool = False) -> Command:
    return Command(
        summary=summary,
        examples=examples,
        config_type=config_type,
        target=f"kubebeast_learner.{target}",
        layer_flags=layer_flags,
        has_sources=issubclass(config_type, TrainingConfig),
        plays=plays,
    )


COMMANDS = {
    "train": _command(
        "Train on this machine: env-server processes and the learner.",
        [
            "--env CartPole-v1 --xpid cartpole",
            "--env PongNoFrameskip-v4 --xpid pong --num-servers 2 --http-address 127.0.0.1:9090",
            "--config pong.yaml --xpid pong --seed 2",
        ],
        TrainConfig,
        "commands.train:train",
    ),
    "mono": _command(
        "Train on this machine without env-servers and native code.",
        ["--env CartPole-v1 --xpid cartpole", "--env maze_env:Maze-v0 --total-steps 200000 --log-info success"],
        MonoConfig,
        "commands.mono:train",
    ),
    "learner": _command(
        "Run the learner; env-servers elsewhere dial it, or it dials them.",
        [
            "--env PongNoFrameskip-v4 --xpid pong --address 0.0.0.0:4431",
            "--env PongNoFrameskip-v4 --xpid pong --dial env-server.example:4432",
        ],
        LearnerConfig,
        "commands.train:learn",
    ),
    "tune": _command(
        "Measure this machine and write the settings for kubebeast train.",
        ["--env PongNoFrameskip-v4 --out pong.yaml"],
        TuneConfig,
        "commands.tune:run",
    ),
    "eval": _command(
        "Play whole episodes with a checkpoint.",
        ["--xpid cartpole", "--xpid cartpole --follow"],
        EvalConfig,
        "play.command:run",
        plays=True,
    ),
    "render": _command(
        "Make a video of whole episodes.",
        ["--xpid cartpole --out cartpole.gif"],
        RenderConfig,
        "play.render:run",
        plays=True,
    ),
    "export": _command(
        "Write a trained actor for other programs.",
        ["--xpid cartpole --out cartpole.pt2"],
        ExportConfig,
        "play.export:run",
        plays=True,
    ),
    "publish": _command(
        "Write a folder with a model card, and push it to the Hugging Face Hub.",
        ["cartpole", "cartpole --video cartpole.mp4 --to-hub OWNER/cartpole --private"],
        PublishConfig,
        "publish.command:run",
    ),
    "export-data": _command(
        "Write the episodes of a recording as a data set.",
        ["cartpole --to cartpole-data", "recording --to minari://cartpole/recorded-v0"],
        ExportDataConfig,
        "commands.export_data:run",
    ),
    "check-env": _command(
        "Try an environment: print its leaves, its model and its problems.",
        ["my_envs:Maze-v0", "CartPole-v1 --steps 2000 --json"],
        CheckEnvConfig,
        "play.check_env:run",
        plays=True,
    ),
}
