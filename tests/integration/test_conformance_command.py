"""kubebeast-conformance passes this repository's own env-server and learner, as commands and over TLS."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.certificates import issue, make_ca
from harness.ports import free_address
from harness.processes.learner_process import LearnerProcess
from harness.processes.training_process import command
from kubebeast_conformance.env_server.suite import CHECKS as ENV_SERVER_CHECKS
from tests.integration.envserver_learner import ROOT

TIMEOUT_S = 300.0


LONG = {"a slow welcome", "keepalive"}
"""Checks of an env-server that take a minute each."""
LEARNER = (
    *("--batch-size=2", "--unroll-length=10", "--compile=off", "--max-offences=0"),
    *("--handshake-timeout-s=2", "--step-timeout-s=10", "--max-message-mib=4", "--max-streams=6"),
)
WITH_A_GLOBAL = """
import os, sys
from kubebeast_conformance.__main__ import main

class Global:
    def __del__(self, mkdir=os.mkdir):
        mkdir("finalized")

left_to_the_interpreter = Global()
sys.exit(main())
"""


def suite(peer: str, *words: str) -> tuple[list[dict[str, object]], int]:
    """Returns its JSON lines and its exit status."""
    command = [sys.executable, "-W", "error", "-m", "kubebeast_conformance", peer, *words]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert process.stderr == ""
    return [json.loads(line) for line in process.stdout.splitlines()], process.returncode


def complaint(*words: str) -> tuple[str, int]:
    """Returns its standard error and its exit status."""
    command = [sys.executable, "-m", "kubebeast_conformance", *words]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    return process.stderr, process.returncode


def outcomes(lines: Sequence[dict[str, object]], outcome: str) -> list[object]:
    return [line["check"] for line in lines if line.get("outcome") == outcome]


def env_server(*flags: str) -> list[str]:
    words = ["--env=kubebeast_envserver.catch:Catch-v0", "--envs-per-stream=2", *flags]
    return ["--", sys.executable, "-m", "kubebeast_envserver", *words]


def test_an_env_server_that_dials_passes_and_ci_gets_the_results(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    lines, status = suite(
        *("env-server", "--listen=127.0.0.1:0", "--steps=60", f"--junit={report}"),
        *env_server("--address={address}", "--run=conformance"),
    )
    *results, counts = lines
    assert (status, outcomes(results, "failed")) == (0, [])
    names = {"token", "play without compression", "actions: not finite", "a second learner"} | LONG
    assert set(outcomes(results, "skipped")) == names
    assert (counts["passed"], counts["skipped"]) == (len(ENV_SERVER_CHECKS) - len(names), len(names))
    assert counts["not_looked_at"] == ["C4", "E7", "T5"] and "E5" in str(counts["not_seen"])
    root = ElementTree.parse(report).getroot()
    assert [case.get("name") for case in root] == [check.name for check in ENV_SERVER_CHECKS]


def test_an_env_server_that_listens_passes() -> None:
    lines, status = suite("env-server", f"--dial={free_address()}", "--steps=60", *env_server("--listen={address}"))
    assert (status, outcomes(lines, "failed")) == (0, [])
    assert "a second learner" in outcomes(lines, "passed")


def test_an_env_server_with_stacks_shows_its_token_over_tls(tmp_path: Path) -> None:
    authority = make_ca(tmp_path)
    server, client = issue(authority, tmp_path, "server"), issue(authority, tmp_path, "client")
    token = tmp_path / "token"
    token.write_text("open-sesame\n")
    own = [f"--tls-cert={client.cert}", f"--tls-key={client.key}", f"--tls-ca={authority.pem}", f"--token-file={token}"]
    mock = ["--", sys.executable, "-m", "kubebeast_envserver", "--env=Mock", "--envs-per-stream=2"]
    lines, status = suite(
        "env-server",
        "--listen=127.0.0.1:0",
        *("--only=token", "--only=play", "--only=UNAVAILABLE"),
        *(f"--tls-cert={server.cert}", f"--tls-key={server.key}", f"--tls-ca={authority.pem}", f"--token-file={token}"),
        *mock,
        "--address={address}",
        *own,
    )
    assert (status, outcomes(lines, "failed"), outcomes(lines, "skipped")) == (0, [], [])


@pytest.mark.slow
def test_the_learner_passes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("open-sesame\n")
    with LearnerProcess(tmp_path, *LEARNER, f"--token-file={token}", warm=True) as learner:
        learner.wait_listening()
        limits = ["--handshake-timeout-s=2", "--step-timeout-s=10", "--max-message-mib=4", "--max-streams=6"]
        flags = [f"--address={learner.address}", f"--token-file={token}", "--steps=60", "--floods", *limits]
        lines, status = suite("learner", *flags)
        assert learner.is_running
    *results, counts = lines
    assert (status, outcomes(results, "failed")) == (0, [])
    assert set(outcomes(results, "skipped")) == {"keepalive", "SIGTERM", "the end of the run"}
    assert counts["not_looked_at"] == ["E9", "S6", "T5"]
    assert learner.errors() == []


def test_what_is_wrong_is_shown_with_its_rule_and_its_bytes() -> None:
    peer = ["--", sys.executable, "-m", "tests.contract.faulty_env_server", "O8", "{address}"]
    lines, status = suite("env-server", "--listen=127.0.0.1:0", "--only=play", "--stop-at-failure", *peer)
    (failure,) = [line for line in lines if line.get("outcome") == "failed"]
    assert (status, failure["rule"]) == (1, "O8")
    assert "observations.rewards[1]: inf is not finite" in str(failure["reason"])
    assert "[00 00 80 7f]" in str(failure["evidence"])


def test_the_command_ends_without_taking_the_interpreter_down_beneath_threads_of_grpc(tmp_path: Path) -> None:
    (tmp_path / "with_a_global.py").write_text(WITH_A_GLOBAL)
    command = [sys.executable, "with_a_global.py", "env-server", "--listen=127.0.0.1:0", "--only=token"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (process.returncode, process.stderr) == (0, "")
    assert json.loads(process.stdout.splitlines()[-1])["skipped"] == 1
    assert not (tmp_path / "finalized").exists()


def test_a_flag_that_cannot_be_used_is_named() -> None:
    errors, status = complaint("learner", "--address=127.0.0.1:1", "--hello=missing.json")
    assert status == 2 and "missing.json" in errors


def test_checks_that_do_not_exist_are_no_success() -> None:
    errors, status = complaint("env-server", "--listen=127.0.0.1:0", "--only=everything")
    assert (errors, status) == ("kubebeast-conformance: --only everything: no check has that in its name\n", 2)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "grpcio"])
def test_an_env_server_waits_for_a_minute_and_notices_that_nobody_answers(transport: str) -> None:
    only = ["--only=a slow welcome", "--only=keepalive", "--long-waits"]
    peer = env_server("--address={address}", f"--transport={transport}")
    lines, status = suite("env-server", "--listen=127.0.0.1:0", *only, *peer)
    assert (status, outcomes(lines, "passed")) == (0, ["a slow welcome", "keepalive"]), lines


@pytest.mark.slow
def test_a_learner_notices_that_nobody_answers(tmp_path: Path) -> None:
    with LearnerProcess(tmp_path, *LEARNER[:4], "--step-timeout-s=120", warm=True) as learner:
        learner.wait_listening()
        flags = ["--only=keepalive", "--long-waits", "--step-timeout-s=120"]
        lines, status = suite("learner", f"--address={learner.address}", *flags)
    assert (status, outcomes(lines, "passed")) == (0, ["keepalive"]), lines


@pytest.mark.slow
def test_a_learner_that_dials_passes(tmp_path: Path) -> None:
    address = free_address()
    limits = ["--step-timeout-s=10", f"--dial={address}"]
    with LearnerProcess(tmp_path, *LEARNER[:4], *limits, warm=True) as learner:
        lines, status = suite("learner", f"--listen={address}", "--steps=60", "--step-timeout-s=10", "--patience-s=60")
        assert learner.is_running
    assert (status, outcomes(lines, "failed"), outcomes(lines, "skipped")) == (0, [], ["token"]), lines


@pytest.mark.slow
def test_a_learner_tells_the_end_of_its_run_and_its_own(tmp_path: Path) -> None:
    address = free_address()
    learner = command("learner", f"--address={address}", "--total-steps=600")
    learner += [*LEARNER[:4], "--linger", f"--savedir={tmp_path}", "--xpid=run", "--progress=none"]
    flags = ["--only=SIGTERM", "--only=the end of the run", "--total-steps=600", "--patience-s=60"]
    lines, status = suite("learner", f"--address={address}", *flags, "--", *learner)
    assert (status, outcomes(lines, "passed")) == (0, ["SIGTERM", "the end of the run"]), lines
