"""Repeated tests run with what `make checks` gives them."""

import os
from pathlib import Path

import pytest

from checks.flaky import run_once
from checks.groups import ROOT

TEST = """
import os


def test_tools_are_found():
    assert "{tools}" in os.environ["PATH"].split(os.pathsep)
"""


def test_repeated_tests_find_the_tools_of_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)  # without the tools, which `make checks` has added to this test's own
    path = tmp_path / "test_path.py"
    path.write_text(TEST.format(tools=ROOT / ".venv" / "tools"))

    status, tests, output = run_once([str(path), "-q"])

    assert status == 0, output
    assert [test.failed for test in tests] == [False]
