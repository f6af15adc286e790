"""The `kubebeast` command: reads settings from every source and starts what the subcommand names."""

import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields

from kubebeast_common.variables import unknown_variables
from kubebeast_learner import __version__
from kubebeast_learner.config import (
    CheckEnvConfig,
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
    TrainingConfig,
    TuneConfig,
)
from kubebeast_learner.config.command_line import Voice, parse
from kubebeast_learner.config.sources import layer_flags, log_format_of, setting_types

EXIT_USAGE = 2


@dataclass(frozen=True, slots=True)
class Command:
    summary: str
    config_type: type
    target: str
    """module:function, called with the configuration; imported late, torch takes seconds."""

    @property
    def has_sources(self) -> bool:
        """Whether --config and --recipe are offered."""
        return issubclass(self.config_type, TrainingConfig)


def _command(summary: str, config_type: type, target: str) -> Command:
    return Command(summary, config_type, f"kubebeast_learner.{target}")


COMMANDS = {
    "train": _command(
        "Train on this machine: env-server processes and the learner.", TrainConfig, "commands.train:train"
    ),
    "mono": _command("Train on this machine without env-servers and native code.", MonoConfig, "commands.mono:train"),
    "learner": _command(
        "Run the learner; env-servers elsewhere dial it, or it dials them.", LearnerConfig, "commands.train:learn"
    ),
    "tune": _command(
        "Measure this machine and write the settings for kubebeast train.", TuneConfig, "commands.tune:run"
    ),
    "eval": _command("Play whole episodes with a checkpoint.", EvalConfig, "play.command:run"),
    "render": _command("Make a video of whole episodes.", RenderConfig, "play.render:run"),
    "export": _command("Write a trained actor for other programs.", ExportConfig, "play.export:run"),
    "check-env": _command(
        "Try an environment: what is sent, what model it gets, what is wrong.", CheckEnvConfig, "play.check_env:run"
    ),
    "plot": _command("Draw learning curves of runs.", PlotConfig, "observe.plot.command:run"),
    "report": _command("Write a page about a run.", ReportConfig, "observe.report.command:run"),
    "top": _command("Watch a learner and its env-servers.", TopConfig, "observe.top.command:run"),
    "fleet": _command("Show learner and env-servers in Kubernetes.", FleetConfig, "observe.fleet.status:run"),
    "fleet scale": _command(
        "Set how many env-servers a group has in Kubernetes.", FleetScaleConfig, "observe.fleet.scale:run"
    ),
}
MISSING_PACKAGES = {
    "kubebeast_envserver": "the package kubebeast-envserver is missing: pip install ./protos ./services/common "
    "./services/envserver in KubeBeast's own folder installs it, kubebeast learner trains without",
    "kubebeast_native": "the package kubebeast-native is missing: pip install ./native in KubeBeast's own folder "
    "builds it, kubebeast mono trains without",
    "kubernetes": "the package kubernetes is missing: pip install kubernetes",
    "urllib3": "the package kubernetes is missing: pip install kubernetes",
    "opentelemetry": "--trace-endpoint needs OpenTelemetry: pip install opentelemetry-sdk "
    "opentelemetry-exporter-otlp-proto-http",
}
"""What to do about a package that not every installation has, by the name under which it is imported."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line. Returns the exit status: 0 success, 1 the run failed, 2 bad usage or configuration."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on; https://docs.python.org/3/library/signal.html#note-on-sigpipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run(words: Sequence[str]) -> int:
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
    command, program = COMMANDS[name], f"kubebeast {name}"
    _let_sigterm_end_process_1()
    flags = words[len(name.split()) :]
    voice = Voice(program, log_format_of(flags, os.environ) if command.has_sources else "text")
    try:
        layered = layer_flags(command.config_type, flags, os.environ)
        _warn_about_variables(voice)
        config = parse(voice, program, command.summary, command.config_type, layered, command.has_sources)
        module, function = command.target.split(":")
        status: int = getattr(importlib.import_module(module), function)(config)
    except ConfigError as error:
        voice.say(str(error), logging.ERROR)
        return EXIT_USAGE
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MISSING_PACKAGES:
            raise
        voice.say(MISSING_PACKAGES[package], logging.ERROR)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _warn_about_variables(voice: Voice) -> None:
    """Of all programs' settings: a variable that is not for this command may be for another."""
    of_commands = (setting_types(command.config_type) for command in COMMANDS.values())
    known = {name for types in of_commands for name in types}
    of_env_servers = _settings_of_env_servers()
    for sentence in unknown_variables(os.environ, known | of_env_servers, slips_only=not of_env_servers):
        voice.say(sentence, logging.WARNING)


def _settings_of_env_servers() -> set[str]:
    """Empty where the env-server's package is not installed."""
    try:
        from kubebeast_envserver.config import EnvServerConfig
    except ModuleNotFoundError:
        return set()
    return {field.name for field in fields(EnvServerConfig)}


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
