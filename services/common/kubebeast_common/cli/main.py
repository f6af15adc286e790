"""Runner of the `kubebeast` command: reads settings from all sources and starts the subcommand."""

import difflib
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from kubebeast_common.cli.command import find_commands, other_settings, package_of
from kubebeast_common.cli.parsing import StartLog, explain, is_help_wanted, parse
from kubebeast_common.cli.settings import made_absolute, setting_types
from kubebeast_common.cli.sources import log_format_of
from kubebeast_common.process.family import adopt_orphans, kill_descendants
from kubebeast_common.process.leaving import INTERRUPTED, leave, quiet_interrupts
from kubebeast_common.process.output import outlive_full_volume
from kubebeast_common.settings import ConfigError
from kubebeast_common.text import replace_what_cannot_be_shown
from kubebeast_common.variables import unknown_variables

EXIT_USAGE = 2


MISSING_PACKAGES = {
    "kubebeast_envserver": "the package kubebeast-envserver is missing: pip install ./protos ./services/common "
    "./services/envserver in KubeBeast's own folder installs it, kubebeast learner trains without",
    "kubebeast_native": "the package kubebeast-native is missing: pip install ./native in KubeBeast's own folder "
    "builds it, kubebeast mono trains without",
    "kubebeast_observe": "the package kubebeast-observe is missing: pip install './services/observe[plot]' in "
    "KubeBeast's own folder installs it",
    "grpc": "the package grpcio is missing: pip install 'kubebeast-learner[broker]', or "
    "'./services/learner[broker]' in KubeBeast's own folder",
    "huggingface_hub": "the package huggingface_hub is missing: pip install 'kubebeast-learner[hub]', or "
    "'./services/learner[hub]' in KubeBeast's own folder",
    "kubernetes": "the package kubernetes is missing: pip install kubernetes",
    "matplotlib": "the package matplotlib is missing: pip install matplotlib",
    "minari": "the package minari is missing: pip install 'minari[hdf5]'",
    "numpy": "the package numpy is missing: pip install numpy",
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
        print(f"kubebeast {version('kubebeast-common')}")
        return 0
    name = _name_of(words)
    if name is None:
        print(f"kubebeast: {_refusal(words[0])}", file=sys.stderr)
        return EXIT_USAGE
    command, program = find_commands()[name], f"kubebeast {name}"
    _let_sigterm_end_process_1()
    flags = words[len(name.split()) :]
    out = StartLog(program, log_format_of(flags, os.environ) if command.has_sources else "text")
    try:
        layered = command.layer_flags(command.config_type, flags, os.environ)
        _warn_about_variables(out)
        if is_help_wanted(flags):
            print(explain(out, program, command, layered))
            return 0
        config = made_absolute(parse(out, program, command.config_type, layered, command.has_sources))
        module, function = command.target.split(":")
        with quiet_interrupts():
            run = getattr(importlib.import_module(module), function)
        status: int = run(config)
    except ConfigError as error:
        out.write(str(error), logging.ERROR)
        return EXIT_USAGE
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MISSING_PACKAGES:
            raise
        out.write(MISSING_PACKAGES[package], logging.ERROR)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _name_of(words: Sequence[str]) -> str | None:
    """Returns the command at the beginning of a command line."""
    return next((name for name in (" ".join(words[:2]), *words[:1]) if name in find_commands()), None)


def _refusal(word: str) -> str:
    if package := package_of(word):
        folder = package.replace("kubebeast-", "./services/")
        return f"the package {package}, which has {word}, is missing: pip install {folder} in KubeBeast's own folder"
    near = difflib.get_close_matches(word, find_commands(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"there is no command {word!r}{hint}\n\n{_overview()}"


def _plays(words: Sequence[str]) -> bool:
    name = _name_of(words)
    return name is not None and find_commands()[name].plays


def _warn_about_variables(out: StartLog) -> None:
    """Warns about variables that are no setting of any program; those of other programs are known, too."""
    others = other_settings()
    config_types = [command.config_type for command in find_commands().values()] + others
    known = {name for config_type in config_types for name in setting_types(config_type)}
    for sentence in unknown_variables(os.environ, known, slips_only=not others):
        out.write(sentence, logging.WARNING)


def _let_sigterm_end_process_1() -> None:
    """Handles SIGTERM in process 1 of a container, which only gets signals that it handles: torch imports for seconds.

    https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _overview() -> str:
    lines = ["usage: kubebeast COMMAND [options]", "", "commands:"]
    lines += [f"  {name:<11} {command.summary}" for name, command in find_commands().items()]
    lines += ["", "kubebeast COMMAND --help shows a command's settings; kubebeast --version the version."]
    return "\n".join(lines)
