"""Command line of the suite: `kubebeast-conformance` or `python -m kubebeast_conformance`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from kubebeast_common.access.tls_files import TlsError, TlsFiles
from kubebeast_common.access.token_file import TokenFileError
from kubebeast_common.process.verdict import end_with
from kubebeast_common.settings import ConfigError
from kubebeast_common.text import replace_what_cannot_be_shown
from kubebeast_conformance.check import Check, Result, Subject, run_checks
from kubebeast_conformance.contract.hello import check_hello
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.env_server import subject as env_server
from kubebeast_conformance.env_server.suite import CHECKS as ENV_SERVER_CHECKS
from kubebeast_conformance.learner import subject as learner
from kubebeast_conformance.learner.dialing_subject import DialingLearner
from kubebeast_conformance.learner.suite import CHECKS as LEARNER_CHECKS
from kubebeast_conformance.learner.suite import DIALING_CHECKS
from kubebeast_conformance.report.junit import write_junit
from kubebeast_conformance.report.lines import Lines
from kubebeast_conformance.wire.access import Access
from kubebeast_protos.v1 import actor_pool_pb2 as pb

PASSED, FAILED, USAGE = 0, 1, 2
"""Exit statuses."""
_UNUSABLE = (TlsError, TokenFileError, OSError, RuntimeError, json_format.ParseError, ViolationError, ConfigError)
"""Errors caused by flags, files and addresses."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the checks and returns the exit status of the process."""
    replace_what_cannot_be_shown()
    flags = parser().parse_args(arguments)
    status: list[int] = []
    end_with(lambda: status[0] if status else None)
    status.append(_run(flags))
    return status[0]


def _run(flags: argparse.Namespace) -> int:
    lines, results = Lines(sys.stdout), []
    try:
        for result in _results(flags):
            lines.write(result)
            results.append(result)
    except _UNUSABLE as error:
        print(f"kubebeast-conformance: {error}", file=sys.stderr)
        return USAGE
    lines.sum_up(flags.peer, results)
    if flags.junit is not None:
        write_junit(flags.junit, flags.peer, results)
    return FAILED if any(result.outcome == "failed" for result in results) else PASSED


def _results(flags: argparse.Namespace) -> Iterator[Result]:
    access = Access(TlsFiles(flags.tls_cert, flags.tls_key, flags.tls_ca), flags.tls_server_name, flags.token_file)
    common: dict[str, Any] = {
        "access": access,
        "num_steps": flags.steps,
        "patience_s": flags.patience_s,
        "quiet_s": flags.quiet_s,
        "long_waits": flags.long_waits,
        "command": flags.command,
        "show_output": flags.show_output,
    }
    return _of_env_server(flags, common) if flags.peer == "env-server" else _of_learner(flags, common)


def _of_env_server(flags: argparse.Namespace, common: dict[str, Any]) -> Iterator[Result]:
    options = env_server.Options(listen=flags.listen, dial=flags.dial, **common)
    with env_server.EnvServer(options) as subject:
        checks = _chosen(ENV_SERVER_CHECKS, flags.only)
        yield from run_checks(checks, subject, pb.ActRequest, stop_at_failure=flags.stop_at_failure)


def _of_learner(flags: argparse.Namespace, common: dict[str, Any]) -> Iterator[Result]:
    options = learner.Options(
        address=flags.listen or flags.address,
        hello=learner.DEFAULT_HELLO if flags.hello is None else _read_hello(flags.hello),
        handshake_timeout_s=flags.handshake_timeout_s,
        step_timeout_s=flags.step_timeout_s,
        max_message_mib=flags.max_message_mib,
        max_streams=flags.max_streams,
        total_steps=flags.total_steps,
        floods=flags.floods,
        **common,
    )
    if flags.listen:
        with DialingLearner(options) as caller:
            checks = _chosen(DIALING_CHECKS, flags.only)
            yield from run_checks(checks, caller, pb.ActResponse, stop_at_failure=flags.stop_at_failure)
    else:
        with learner.Learner(options) as subject:
            listening_checks = _chosen(LEARNER_CHECKS, flags.only)
            yield from run_checks(listening_checks, subject, pb.ActResponse, stop_at_failure=flags.stop_at_failure)


def _read_hello(path: Path) -> pb.Hello:
    """Reads a Hello in JSON. Raises OSError, ParseError for an invalid text, and ViolationError for a broken rule."""
    hello = json_format.Parse(path.read_text(encoding="utf-8"), pb.Hello())
    hello.instance_id = hello.instance_id or "conformance"
    check_hello(hello)
    return hello


def _chosen(checks: Sequence[Check[Subject]], only: Sequence[str]) -> list[Check[Subject]]:
    chosen = [check for check in checks if not only or any(text in check.name for text in only)]
    if not chosen:
        raise ConfigError(f"--only {' --only '.join(only)}: no check has that in its name")
    return chosen


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    top = argparse.ArgumentParser(
        "kubebeast-conformance", description="Reports which rules of KubeBeast's wire contract a peer breaks."
    )
    peers = top.add_subparsers(dest="peer", required=True)
    _add_env_server(peers.add_parser("env-server", help="plays the learner for an env-server"))
    _add_learner(peers.add_parser("learner", help="plays a fleet of env-servers for a learner"))
    return top


def _add_env_server(parser: argparse.ArgumentParser) -> None:
    way = parser.add_mutually_exclusive_group(required=True)
    listen = 'address that the env-server dials: "host:port" or "unix:/path"'
    way.add_argument("--listen", "--learner-side", metavar="ADDRESS", default="", help=listen)
    way.add_argument("--dial", metavar="ADDRESS", default="", help="address on which the env-server listens")
    _add_common(parser)


def _add_learner(parser: argparse.ArgumentParser) -> None:
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--address", metavar="ADDRESS", default="", help="address on which the learner listens")
    way.add_argument("--listen", metavar="ADDRESS", default="", help="address that the learner dials")
    hello = "the fleet's Hello as JSON: its leaves must be those of the run; default: an image, numbers, two actions"
    parser.add_argument("--hello", metavar="FILE", type=Path, help=hello)
    limits = (("handshake-timeout-s", float, 10.0), ("step-timeout-s", float, 60.0), ("max-message-mib", int, 64))
    for name, kind, default in limits:
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"learner's setting; default: {default:g}")
    for name in ("max-streams", "total-steps"):
        parser.add_argument(f"--{name}", type=int, default=0, help="learner's setting; without it, a check is skipped")
    floods = "also run checks that flood the learner like an attacker without a token"
    parser.add_argument("--floods", action="store_true", help=floods)
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    command = (
        "command that starts the peer, after --, with {address} for the address; without it, some checks are skipped"
    )
    parser.add_argument("command", metavar="COMMAND", nargs="*", default=(), help=command)
    parser.add_argument("--show-output", action="store_true", help="show the output of the command")
    parser.add_argument("--long-waits", action="store_true", help="also run checks that take a minute each")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="also write the results to this file, as JUnit XML")
    parser.add_argument(
        "--only", metavar="TEXT", action="append", default=[], help="run only checks with this text in their names"
    )
    parser.add_argument("--steps", type=int, default=200, help="steps of each check that plays; default: 200")
    parser.add_argument("--stop-at-failure", action="store_true", help="skip all checks after the first failure")
    waits = (
        ("patience-s", 30.0, "maximum wait for a due event"),
        ("quiet-s", 1.0, "wait for an event that must not occur"),
    )
    for name, default, text in waits:
        parser.add_argument(f"--{name}", type=float, default=default, help=f"{text}, in seconds; default: {default:g}")
    parser.add_argument("--tls-cert", metavar="FILE", default="", help="PEM file: the certificate of the suite")
    parser.add_argument("--tls-key", metavar="FILE", default="", help="PEM file: the private key of --tls-cert")
    parser.add_argument("--tls-ca", metavar="FILE", default="", help="PEM file: authorities of the peer's certificate")
    parser.add_argument(
        "--tls-server-name",
        metavar="NAME",
        default="",
        help="expected name in the peer's certificate if the suite dials",
    )
    parser.add_argument("--token-file", metavar="FILE", default="", help="bearer tokens, one a line")


if __name__ == "__main__":
    sys.exit(main())
