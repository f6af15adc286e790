"""The `kubebeast` command: reads settings from every source and starts what the subcommand names."""

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from kubebeast_envserver import log
from kubebeast_learner import __version__
from kubebeast_learner.config import (
    ConfigError,
    EvalConfig,
    ExportConfig,
    FleetConfig,
    FleetScaleConfig,
    LearnerConfig,
    MonoConfig,
    PlotConfig,
    RenderConfig,
    ReportConfig,
    TopConfig,
    TrainConfig,
)
from kubebeast_learner.config_sources import LayeredFlags, layer_flags

EXIT_USAGE = 2


@dataclass(frozen=True, slots=True)
class Command:
    summary: str
    config_type: type
    target: str
    """module:function, called with the configuration; imported late, torch takes seconds."""
    has_sources: bool = True
    """Whether --config and --recipe are offered."""


COMMANDS = {
    "train": Command(
        "Train on this machine: env-server processes and the learner.",
        TrainConfig,
        "kubebeast_learner.distributed:train",
    ),
    "mono": Command(
        "Train on this machine without env-servers and native code.", MonoConfig, "kubebeast_learner.mono.app:train"
    ),
    "learner": Command(
        "Run the learner; env-servers elsewhere dial it, or it dials them.",
        LearnerConfig,
        "kubebeast_learner.distributed:learn",
    ),
    "eval": Command(
        "Play whole episodes with a checkpoint.", EvalConfig, "kubebeast_learner.evaluate:run", has_sources=False
    ),
    "render": Command(
        "Make a video of whole episodes.", RenderConfig, "kubebeast_learner.render:run", has_sources=False
    ),
    "export": Command(
        "Write a trained actor for other programs.", ExportConfig, "kubebeast_learner.export:run", has_sources=False
    ),
    "plot": Command(
        "Draw learning curves of runs.", PlotConfig, "kubebeast_learner.plot.command:run", has_sources=False
    ),
    "report": Command(
        "Write a page about a run.", ReportConfig, "kubebeast_learner.report.command:run", has_sources=False
    ),
    "top": Command(
        "Watch a learner and its env-servers.", TopConfig, "kubebeast_learner.top.command:run", has_sources=False
    ),
    "fleet": Command(
        "Show learner and env-servers in Kubernetes.",
        FleetConfig,
        "kubebeast_learner.fleet.status:run",
        has_sources=False,
    ),
    "fleet scale": Command(
        "Set how many env-servers a group has in Kubernetes.",
        FleetScaleConfig,
        "kubebeast_learner.fleet.scale:run",
        has_sources=False,
    ),
}
MISSING_PACKAGES = {
    "kubebeast_native": "kubebeast-native is missing: pip install 'kubebeast-learner[distributed]', or train with "
    "kubebeast mono, which needs none",
    "kubernetes": "the kubernetes package is missing: pip install 'kubebeast-learner[fleet]'",
    "opentelemetry": "--trace-endpoint needs OpenTelemetry: pip install 'kubebeast-learner[tracing]'",
}
"""What to do about a package that not every installation has, by the name under which it is imported."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line. Returns the exit status: 0 success, 1 the run failed, 2 bad usage or configuration."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0 if words else EXIT_USAGE
    if words[0] in ("-V", "--version"):
        print(f"kubebeast {__version__}")
        return 0
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), None)
    if name is None:
        print(f"kubebeast: there is no command {words[0]!r}\n\n{_overview()}", file=sys.stderr)
        return EXIT_USAGE
    command = COMMANDS[name]
    _let_sigterm_end_process_1()
    try:
        layered = layer_flags(command.config_type, words[len(name.split()) :], os.environ)
        config = _parse(f"kubebeast {name}", command, layered)
        module, function = command.target.split(":")
        status: int = getattr(importlib.import_module(module), function)(config)
    except ConfigError as error:
        print(f"kubebeast {name}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MISSING_PACKAGES:
            raise
        print(f"kubebeast: {MISSING_PACKAGES[package]}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _let_sigterm_end_process_1() -> None:
    """Process 1 of a container gets no signal that it has not asked for, and importing torch takes seconds.

    https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _overview() -> str:
    lines = ["usage: kubebeast COMMAND [options]", "", "commands:"]
    lines += [f"  {name:<11} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "kubebeast COMMAND --help shows a command's settings; kubebeast --version the version."]
    return "\n".join(lines)


def _parse(program: str, command: Command, layered: LayeredFlags) -> Any:
    """The validated configuration. SystemExit(2) after a message when a flag is unknown or a value cannot be used."""
    try:
        config = tyro.cli(
            _with_sources(command.config_type) if command.has_sources else command.config_type,
            prog=program,
            description=command.summary,
            args=layered.flags,
            config=(tyro.conf.OmitArgPrefixes,),
        )
    except SystemExit as end:
        if end.code:
            for note in layered.notes:
                print(f"{program}: settings of {note}", file=sys.stderr)
        raise
    if command.has_sources:
        handler = log.make_handler(config.run.log_level, config.run.log_format)
        for note in layered.notes:
            print(log.line(__name__, f"settings of {note}", handler.format), file=sys.stderr)
    return config


def _with_sources(config_type: type) -> Callable[..., Any]:
    """A command's settings and the flags that say where settings come from, which layer_flags has already followed."""

    config_flag = tyro.conf.arg(
        metavar="FILE",
        help="YAML file of settings, name: value. KUBEBEAST_<NAME> variables and flags override it.",
    )
    recipe_flag = tyro.conf.arg(
        metavar="NAME", help="Settings known to learn: auto goes by the environment id; none, or a recipe's name."
    )

    def settings(
        settings: Any,
        *,
        config: Annotated[Path | None, config_flag] = None,
        recipe: Annotated[str, recipe_flag] = "auto",
    ) -> Any:
        return settings

    settings.__annotations__["settings"] = config_type
    return settings
