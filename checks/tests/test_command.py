"""`python3 -m checks` on this repository, without running a group."""

import subprocess
import sys
from pathlib import Path

import pytest

from checks.groups import ROOT, load


def checks(*words: str, cache: Path | str = "unused") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "checks", *([f"--cache={cache}"] if cache else []), *words]
    return subprocess.run(command, cwd=ROOT, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=100)


def test_the_list_has_a_line_for_every_group_with_its_hash(tmp_path: Path) -> None:
    lines = checks("--list", cache=tmp_path).stdout.splitlines()

    assert [line.split()[0] for line in lines] == [group.name for group in load()]
    assert all(len(line.split()[1]) == 12 for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_what_make_test_runs_needs_no_cluster_and_no_clang(tmp_path: Path) -> None:
    names = [line.split()[0] for line in checks("--list", "--fast", cache=tmp_path).stdout.splitlines()]

    assert {"core-tsan", "unit-learner", "faults", "repository"} <= set(names)
    assert not {"core-asan", "end-to-end", "release", "installs"} & set(names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "nothing"], "--only: groups.toml has no nothing"),
        (["--write-stamps", "--fast"], "--write-stamps is for whole runs"),
        (["--write-stamps", "--only", "lint"], "--write-stamps is for whole runs"),
    ],
)
def test_a_wrong_flag_is_named(words: list[str], message: str) -> None:
    done = checks(*words)

    assert done.returncode == 2
    assert message in done.stderr


def test_without_a_cache_the_variable_is_named() -> None:
    done = checks("--list", cache="")

    assert done.returncode == 2
    assert "CHECKS_CACHE" in done.stderr
