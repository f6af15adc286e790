"""Repeated tests run with what `make checks` gives them."""

from pathlib import Path

from checks.flaky import run_once
from checks.groups import ROOT

TEST = """
import os


def test_tools_are_found():
    assert "{tools}" in os.environ["PATH"].split(os.pathsep)
"""


def test_repeated_tests_find_the_tools_of_the_clone(tmp_path: Path) -> None:
    path = tmp_path / "test_path.py"
    path.write_text(TEST.format(tools=ROOT / ".venv" / "tools"))

    status, tests, output = run_once([str(path), "-q"])

    assert status == 0, output
    assert [test.failed for test in tests] == [False]
