"""The `kubebeast` command: reads settings from all sources and starts the subcommand."""

import difflib
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NoReturn

from kubebeast_common.process.family import adopt_orphans, kill_descendants
from kubebeast_common.process.leaving import INTERRUPTED, leave, quiet_interrupts
from kubebeast_common.process.output import outlive_full_volume
from kubebeast_common.text import replace_what_cannot_be_shown
from kubebeast_common.variables import unknown_variables
from kubebeast_learner import __version__
from kubebeast_learner.config import (
    CheckEnvConfig,
    CompletionConfig,
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
from kubebeast_learner.config.command_line import Voice, explain, is_help_wanted, parse
from kubebeast_learner.config.sources import layer_flags, log_format_of, made_absolute, setting_types

EXIT_USAGE = 2


@dataclass(frozen=True, slots=True)
class Command:
    summary: str
    example: str
    """Words after `kubebeast NAME`."""
    config_type: type
    target: str
    """module:function, called with the configuration; imported late, as torch takes seconds."""
    plays: bool = False
    """True if environments run in its own process."""

    @property
    def has_sources(self) -> bool:
        """True if --config and --recipe are offered."""
        return issubclass(self.config_type, TrainingConfig)


def _command(summary: str, example: str, config_type: type, target: str, *, plays: bool = False) -> Command:
    return Command(summary, example, config_type, f"kubebeast_learner.{target}", plays)


COMMANDS = {
    "train": _command(
        "Train on this machine: env-server processes and the learner.",
        "--env CartPole-v1 --xpid cartpole",
        TrainConfig,
        "commands.train:train",
    ),
    "mono": _command(
        "Train on this machine without env-servers and native code.",
        "--env CartPole-v1 --xpid cartpole",
        MonoConfig,
        "commands.mono:train",
    ),
    "learner": _command(
        "Run the learner; env-servers elsewhere dial it, or it dials them.",
        "--env PongNoFrameskip-v4 --xpid pong --address 0.0.0.0:4431",
        LearnerConfig,
        "commands.train:learn",
    ),
    "tune": _command(
        "Measure this machine and write the settings for kubebeast train.",
        "--env PongNoFrameskip-v4 --out pong.yaml",
        TuneConfig,
        "commands.tune:run",
    ),
    "eval": _command(
        "Play whole episodes with a checkpoint.", "--xpid cartpole", EvalConfig, "play.command:run", plays=True
    ),
    "render": _command(
        "Make a video of whole episodes.",
        "--xpid cartpole --out cartpole.gif",
        RenderConfig,
        "play.render:run",
        plays=True,
    ),
    "export": _command(
        "Write a trained actor for other programs.",
        "--xpid cartpole --out cartpole.pt2",
        ExportConfig,
        "play.export:run",
        plays=True,
    ),
    "check-env": _command(
        "Try an environment: what is sent, what model it gets, what is wrong.",
        "my_envs:Maze-v0",
        CheckEnvConfig,
        "play.check_env:run",
        plays=True,
    ),
    "plot": _command(
        "Draw learning curves of runs.", "cartpole --out cartpole.png", PlotConfig, "observe.plot.command:run"
    ),
    "report": _command("Write a page about a run.", "cartpole", ReportConfig, "observe.report.command:run"),
    "top": _command(
        "Watch a learner and its env-servers.", "--learner 127.0.0.1:9090", TopConfig, "observe.top.command:run"
    ),
    "fleet": _command(
        "Show learner and env-servers in Kubernetes.",
        "--release catch --watch",
        FleetConfig,
        "observe.fleet.status:run",
    ),
    "fleet scale": _command(
        "Set how many env-servers a group has in Kubernetes.",
        "envserver 8 --release catch",
        FleetScaleConfig,
        "observe.fleet.scale:run",
    ),
    "completion": _command(
        "Print what completes commands and flags in a shell.", "bash", CompletionConfig, "completion:run"
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
"""Advice for packages that some installations lack, by import name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns the exit status.

    It is 0 for success, 1 for a failed run, 2 for bad usage or configuration, and 130 after Ctrl-C. If `arguments` is
    None, those of the process are taken, and the process is ended, even if environments have left threads or processes.
    """
    if arguments is None:
        _run_and_leave(sys.argv[1:])
    return _run_to_reader(list(arguments))


def _run_and_leave(words: list[str]) -> NoReturn:
    plays = _plays(words)
    if plays:
        adopt_orphans()
    try:
        status = _run_to_reader(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BaseException:
        traceback.print_exc()
        status = 1
    leave(status, kill_descendants if plays else lambda: None)


def _run_to_reader(words: list[str]) -> int:
    outlive_full_volume()
    replace_what_cannot_be_shown()
    try:
        try:
            return _run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader is gone; https://docs.python.org/3/library/signal.html#note-on-sigpipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0 if words else EXIT_USAGE
    if words[0] in ("-V", "--version"):
        print(f"kubebeast {__version__}")
        return 0
    name = _name_of(words)
    if name is None:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        print(f"kubebeast: there is no command {words[0]!r}{hint}\n\n{_overview()}", file=sys.stderr)
        return EXIT_USAGE
    command, program = COMMANDS[name], f"kubebeast {name}"
    _let_sigterm_end_process_1()
    flags = words[len(name.split()) :]
    voice = Voice(program, log_format_of(flags, os.environ) if command.has_sources else "text")
    try:
        layered = layer_flags(command.config_type, flags, os.environ)
        _warn_about_variables(voice)
        if is_help_wanted(flags):
            example = f"{program} {command.example}"
            print(explain(voice, program, command.summary, example, command.config_type, layered, command.has_sources))
            return 0
        config = made_absolute(parse(voice, program, command.config_type, layered, command.has_sources))
        module, function = command.target.split(":")
        with quiet_interrupts():
            run = getattr(importlib.import_module(module), function)
        status: int = run(config)
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
        return INTERRUPTED
    return status


def _name_of(words: Sequence[str]) -> str | None:
    """Returns the command at the beginning of a command line."""
    return next((name for name in (" ".join(words[:2]), *words[:1]) if name in COMMANDS), None)


def _plays(words: Sequence[str]) -> bool:
    name = _name_of(words)
    return name is not None and COMMANDS[name].plays


def _warn_about_variables(voice: Voice) -> None:
    """Warns about variables that are no setting of any program; those of other commands are known, too."""
    of_commands = (setting_types(command.config_type) for command in COMMANDS.values())
    known = {name for types in of_commands for name in types}
    of_env_servers = _settings_of_env_servers()
    for sentence in unknown_variables(os.environ, known | of_env_servers, slips_only=not of_env_servers):
        voice.say(sentence, logging.WARNING)


def _settings_of_env_servers() -> set[str]:
    """Returns the settings of the env-server; empty if its package is not installed."""
    try:
        from kubebeast_envserver.config import EnvServerConfig
    except ModuleNotFoundError:
        return set()
    return {field.name for field in fields(EnvServerConfig)}


def _let_sigterm_end_process_1() -> None:
    """Handles SIGTERM in process 1 of a container, which only gets signals that it handles: torch imports for seconds.

    https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _overview() -> str:
    lines = ["usage: kubebeast COMMAND [options]", "", "commands:"]
    lines += [f"  {name:<11} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "kubebeast COMMAND --help shows a command's settings; kubebeast --version the version."]
    return "\n".join(lines)
