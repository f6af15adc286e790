"""Workflows hold no logic of their own: each step calls a script or a target that also runs here."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.repository.documents import ROOT
from tests.unit.repository.shell import make_targets

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
ACTION = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
ARGUMENT = r"(?: (?:[\w./-]+|\"\$\w+\"))*"
"""Words, or variables of the environment in quotes."""
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield f"{path.name}: {name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in jobs():
        yield from ((name, step) for step in job.get("steps", []))


def is_here(command: str) -> bool:
    """Returns True if a step's command is one call of a script or of a target of this repository."""
    if target := re.fullmatch(rf"make ([a-z-]+){ARGUMENT}", command):
        return target[1] in make_targets()
    script = re.fullmatch(rf"(scripts/[\w/-]+){ARGUMENT}", command)
    return script is not None and (ROOT / script[1]).is_file() and bool((ROOT / script[1]).stat().st_mode & 0o100)


def test_every_step_calls_one_script_or_target_of_this_repository() -> None:
    commands = [(name, step["run"]) for name, step in steps() if "run" in step]

    assert len(commands) > 10
    assert [(name, command) for name, command in commands if not is_here(command)] == []


@pytest.mark.parametrize(
    "command", ["make nothing", "scripts/nothing", "pip install x", "make lint && make docs", "make lint\nmake docs"]
)
def test_other_commands_are_not_of_this_repository(command: str) -> None:
    assert not is_here(command)


@every_workflow
def test_every_action_is_a_commit_with_its_version_beside_it(path: Path) -> None:
    lines = re.findall(r"uses: .*", path.read_text(encoding="utf-8"))

    assert lines
    others = [line for line in lines if not ACTION.fullmatch(line) and not line.startswith("uses: ./")]
    assert others == []


def test_one_version_of_an_action_is_in_use() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    uses = {line.split("@")[0]: set[str]() for line in re.findall(r"uses: [\w-]+/.*", text)}
    for line in re.findall(r"uses: [\w-]+/.*", text):
        uses[line.split("@")[0]].add(line)

    assert {name: lines for name, lines in uses.items() if len(lines) > 1} == {}


def test_jobs_have_the_permissions_that_they_name_and_an_end() -> None:
    for name, job in jobs():
        assert set(job["permissions"].values()) <= {"read", "write"}, name
        assert "uses" in job or 0 < job["timeout-minutes"] <= 180, name


@every_workflow
def test_nothing_is_permitted_by_default(path: Path) -> None:
    assert load(path)["permissions"] == {}


def test_no_check_may_write_anything() -> None:
    for name, job in jobs():
        assert name.startswith("release.yaml") or job["permissions"] == {"contents": "read"}, name


def test_no_checkout_leaves_its_credentials() -> None:
    checkouts = [step for _, step in steps() if step.get("uses", "").startswith("actions/checkout@")]

    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_linters_find_no_fault() -> None:
    script = subprocess.run(
        [ROOT / "scripts" / "workflows-lint"], capture_output=True, text=True, timeout=100, check=False
    )

    assert script.returncode == 0, script.stdout + script.stderr
