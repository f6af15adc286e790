"""The commands of `kubebeast` that watch runs and fleets."""

from kubebeast_common.cli.command import Command
from kubebeast_observe.settings import FleetConfig, FleetScaleConfig, PlotConfig, ReportConfig, TopConfig


def _command(summary: str, example: str, config_type: type, target: str) -> Command:
    return Command(summary=summary, example=example, config_type=config_type, target=f"kubebeast_observe.{target}")


COMMANDS = {
    "plot": _command("Draw learning curves of runs.", "cartpole --out cartpole.png", PlotConfig, "plot.command:run"),
    "report": _command("Write a page about a run.", "cartpole", ReportConfig, "report.command:run"),
    "top": _command("Watch a learner and its env-servers.", "--learner 127.0.0.1:9090", TopConfig, "top.command:run"),
    "fleet": _command(
        "Show learner and env-servers in Kubernetes.", "--release catch --watch", FleetConfig, "fleet.status:run"
    ),
    "fleet scale": _command(
        "Set how many env-servers a group has in Kubernetes.",
        "envserver 8 --release catch",
        FleetScaleConfig,
        "fleet.scale:run",
    ),
}
