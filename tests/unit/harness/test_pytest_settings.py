"""Settings, the size of a terminal, and a proxy in the environment reach no test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def evaluate(expression: str, **environ: str) -> str:
    """Returns what an expression is in a process with the settings of tests."""
    program = f"import harness.pytest_settings, os, urllib.request; print({expression})"
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, **environ}, stdout=subprocess.PIPE, check=True
    )
    return printed.stdout.decode().strip()


def test_settings_in_the_environment_do_not_reach_the_tests() -> None:
    names = "[name for name in os.environ if name.startswith('KUBEBEAST_')]"
    assert evaluate(names, KUBEBEAST_ENV="Taxi-v3", KUBEBEAST_E2E_TAG="1") == "[]"


def test_output_is_that_of_no_terminal() -> None:
    names = "{'COLUMNS', 'LINES', 'FORCE_COLOR', 'NO_COLOR'} & set(os.environ)"
    assert evaluate(names, COLUMNS="41", LINES="9", FORCE_COLOR="1", NO_COLOR="1") == "set()"


def test_servers_of_tests_are_reached_without_a_proxy() -> None:
    hosts = ("127.0.0.1", "localhost", "intranet", "pypi.org")
    bypassed = f"[bool(urllib.request.proxy_bypass(host)) for host in {hosts}]"
    proxies = {"http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "no_proxy": "intranet"}
    assert evaluate(bypassed, **proxies) == "[True, True, True, False]"
