"""The command of `kubebeast` that searches for settings."""

from kubebeast_common.cli.command import Command
from kubebeast_sweep.settings import SweepConfig

COMMANDS = {
    "sweep": Command(
        summary="Search for settings: many runs beside each other.",
        examples=["sweep.yaml", "sweep.yaml --parallel 4", "sweep.yaml --show"],
        config_type=SweepConfig,
        target="kubebeast_sweep.command:run",
    ),
}
