"""A whole run in a clean clone writes stamps, and the next run skips the stamped groups."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checks.groups import ROOT
from checks.tests.repositories import commit, make_repository

TABLE = """
[sets]
base = ["base"]
[groups.core]
command = "echo core >>../log"
inputs = ["src"]
[groups.lint]
command = "echo lint >>../log"
always = true
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the checks of this one and its own table."""
    clone = make_repository(tmp_path / "clone", {"base": "", "src/a.cc": "1", ".gitignore": "__pycache__\n"})
    shutil.copytree(ROOT / "checks", clone / "checks", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    (clone / "checks" / "groups.toml").write_text(TABLE)
    commit(clone)
    return clone


def run(clone: Path, cache: Path, *words: str, **env: str) -> tuple[list[str], str]:
    """Returns the groups that ran, and the output."""
    log = clone.parent / "log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "checks", f"--cache={cache}", *words]
    variables = {name: value for name, value in os.environ.items() if name != "CI_ALL"}
    done = subprocess.run(command, cwd=clone, env={**variables, **env}, capture_output=True, text=True, timeout=100)
    return log.read_text().split(), done.stdout + done.stderr


def test_what_has_passed_is_spared_in_another_clone_until_its_inputs_change(clone: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(clone, cache, "--write-stamps")[0] == ["core", "lint"]
    other = tmp_path / "another" / "clone"
    other.parent.mkdir()
    subprocess.run(["git", "clone", "--quiet", clone, other], check=True)
    ran, output = run(other, cache, "--write-stamps")
    assert ran == ["lint"]
    assert "same inputs" in output
    assert run(other, cache, "--write-stamps", CI_ALL="1")[0] == ["core", "lint"]
    (other / "src" / "a.cc").write_text("2")
    assert run(other, cache)[0] == ["core", "lint"]


def test_a_group_whose_inputs_are_incomplete_passes_and_runs_again(clone: Path, tmp_path: Path) -> None:
    (clone / ".venv").symlink_to(ROOT / ".venv")
    test = "from pathlib import Path\ndef test_it():\n    assert (Path.cwd() / 'src' / 'a.cc').read_text()\n"
    (clone / "tests").mkdir()
    (clone / "tests" / "test_it.py").write_text(test)
    (clone / "checks" / "groups.toml").write_text(f'{TABLE}[groups.tests]\ntests = ["tests"]\n')
    commit(clone)
    for _ in range(2):
        ran, output = run(clone, tmp_path / "cache", "--write-stamps")
        assert "tests gets no stamp: its inputs lack src/a.cc" in output
        assert "tests passed" in " ".join(output.split()) and "FAILED" not in output
    assert ran == ["lint"], "core has its stamp"


@pytest.mark.parametrize("fault", ["a failure", "an untracked file", "no --write-stamps"])
def test_no_stamp_is_written_after(fault: str, clone: Path, tmp_path: Path) -> None:
    words = [] if fault == "no --write-stamps" else ["--write-stamps"]
    if fault == "an untracked file":
        (clone / "untracked").write_text("")
    if fault == "a failure":
        table = clone / "checks" / "groups.toml"
        table.write_text(TABLE.replace("echo lint >>", "echo lint >>../log; false; echo >>"))
        commit(clone)
    run(clone, tmp_path / "cache", *words)

    assert not (tmp_path / "cache" / "checks").exists()


def test_a_cache_that_cannot_be_written_is_named_and_the_run_passes(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran, output = run(clone, tmp_path / "file", "--write-stamps")

    assert ran == ["core", "lint"]
    assert "cannot be written: all code is compiled again" in output
    assert "no stamps" in output
    assert output.rstrip().endswith("passed")
