"""The commands of `kubebeast` that watch runs and fleets."""

import dataclasses
from collections.abc import Mapping, Sequence

from kubebeast_common.cli.command import Command
from kubebeast_common.cli.sources import LayeredFlags, layer_flags
from kubebeast_observe.settings import FleetConfig, FleetScaleConfig, PlotConfig, ReportConfig, TopConfig


def _command(summary: str, examples: Sequence[str], config_type: type, target: str) -> Command:
    return Command(summary=summary, examples=examples, config_type=config_type, target=f"kubebeast_observe.{target}")


def layer_top_flags(config_type: type, user_flags: Sequence[str], environ: Mapping[str, str]) -> LayeredFlags:
    """Calls `layer_flags`; a first word that is no flag is the value of --learner."""
    if user_flags and not user_flags[0].startswith("-"):
        user_flags = ["--learner", *user_flags]
    return layer_flags(config_type, user_flags, environ)


COMMANDS = {
    "plot": _command(
        "Draw learning curves of runs.",
        ["cartpole --out cartpole.png", "pong-seed1 pong-seed2 --threshold 15 --csv"],
        PlotConfig,
        "plot.command:run",
    ),
    "report": _command(
        "Write a page about a run.", ["cartpole", "cartpole --text"], ReportConfig, "report.command:run"
    ),
    "top": dataclasses.replace(
        _command(
            "Watch a learner and its env-servers.",
            ["127.0.0.1:9090", "--namespace training --release catch"],
            TopConfig,
            "top.command:run",
        ),
        layer_flags=layer_top_flags,
    ),
    "fleet": _command(
        "Show learner and env-servers in Kubernetes.", ["--release catch --watch"], FleetConfig, "fleet.status:run"
    ),
    "fleet scale": _command(
        "Set how many env-servers a group has in Kubernetes.",
        ["envserver 8 --release catch"],
        FleetScaleConfig,
        "fleet.scale:run",
    ),
}
