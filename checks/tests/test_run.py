"""Runs of small groups in a small repository, and their table."""

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from checks import table
from checks.groups import ROOT, Group
from checks.inputs import Tree
from checks.plan import Plan, make_plans
from checks.run import Report, Run
from checks.run import test_files as files_of
from checks.stamps import Stamp, Stamps
from checks.tests.repositories import make_repository

GOOD, BAD = "def test_it():\n    pass\n", "def test_it():\n    assert 0\n"


def command(name: str, line: str, **fields: Any) -> Group:
    return Group(name=name, inputs=(), command=line, **fields)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with links to the virtual environment and the checks of this one."""
    folder = make_repository(tmp_path / "clone", {"tests/good/test_a.py": GOOD, "tests/bad/test_b.py": BAD})
    for name in (".venv", "checks"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(clone: Path, *groups: Group, pytest_args: tuple[str, ...] = ()) -> tuple[list[Plan], Report]:
    plans = make_plans(groups, Tree(clone), Stamps(clone / "none"), {})
    env = {"PYTEST_ADDOPTS": ""}
    runner = Run(
        plans,
        groups=groups,
        files=Tree(clone).files,
        root=clone,
        env=env,
        show=lambda _: None,
        pytest_args=pytest_args,
        workers=1,
    )
    return plans, runner.run()


def test_every_group_runs_once_and_passes(clone: Path) -> None:
    wait = command("wait", "echo wait >>log", beside=True)
    one = command("one", "echo one >>log", needs=("echo need >>log",), packages=("echo package >>log",))
    two = command("two", "echo two >>log", needs=("echo need >>log",))
    _, report = run(clone, wait, one, two)
    lines = (clone / "log").read_text().split()

    assert not report.failed
    assert lines[0] == "package"
    assert sorted(lines) == ["need", "one", "package", "two", "wait"]
    assert all(outcome.passed for outcome in report.outcomes.values())


def test_settings_in_the_environment_reach_no_check(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBEAST_ENV", "Taxi-v3")
    test = "import os\n\ndef test_it():\n    assert 'KUBEBEAST_ENV' not in os.environ\n"
    (clone / "tests" / "good" / "test_a.py").write_text(test)
    is_not_set = "[[ ! -v KUBEBEAST_ENV ]]"
    groups = command("alone", is_not_set), command("beside", is_not_set, beside=True)
    _, report = run(clone, *groups, Group(name="tests", inputs=(), tests=("tests/good",)))

    assert not report.failed


def test_after_a_failure_the_others_run(clone: Path) -> None:
    _, report = run(clone, command("one", "exit 3"), command("two", "touch began"))

    assert report.failed
    assert (clone / "began").exists()
    assert [name for name, outcome in report.outcomes.items() if outcome.passed] == ["two"]


@pytest.mark.parametrize(
    "first",
    [
        command("one", "exit 3", always=True),
        command("one", "true", packages=("false",)),
        command("one", "true", needs=("false",)),
    ],
    ids=["runs always", "packages", "needs"],
)
def test_after_a_failure_of_what_all_else_needs_no_group_begins(first: Group, clone: Path) -> None:
    plans, report = run(clone, first, command("two", "touch began"))

    assert report.failed
    assert not (clone / "began").exists()
    assert any(line.startswith("two") and "did not finish" in line for line in table.lines(plans, report))


def test_a_failure_beside_is_seen_with_its_output(clone: Path) -> None:
    said: list[str] = []
    plans = make_plans([command("wait", "echo why; exit 1", beside=True)], Tree(clone), Stamps(clone / "none"), {})
    report = Run(plans, groups=[], files=[], root=clone, env={}, show=said.append).run()

    assert report.failed
    assert "why\n" in said


def test_groups_of_tests_share_a_call_and_fail_each_for_itself(clone: Path) -> None:
    good = Group(name="good", inputs=(), tests=("tests/good",))
    bad = Group(name="bad", inputs=(), tests=("tests/bad",))
    plans, report = run(clone, good, bad)
    lines = table.lines(plans, report)

    assert report.failed
    assert report.outcomes["good"].passed
    assert not report.outcomes["bad"].passed
    assert [test.name for test in report.tests if test.failed] == ["tests/bad/test_b.py::test_it"]
    assert any("tests/bad/test_b.py::test_it" in line for line in lines)


def test_every_cause_of_a_failure_is_named(clone: Path) -> None:
    bad = Group(name="bad", inputs=(), tests=("tests/bad",))
    _, report = run(clone, command("one", "exit 3"), bad)
    one, test, pytest_ = report.failures

    assert one.startswith("one FAILED with status 3")
    assert test.startswith("tests/bad/test_b.py::test_it: ")
    assert "test_b.py:2: assert 0" in test
    assert pytest_.startswith("pytest FAILED with status 1")


def test_a_file_that_a_test_opens_and_that_is_no_input_of_its_group_is_named(clone: Path) -> None:
    for name, place in (("guide.md", "module"), ("notes.md", "test")):
        (clone / name).write_text(place)
    (clone / "tests" / "good" / "test_a.py").write_text(
        "from pathlib import Path\nROOT = Path(__file__).parents[2]\nGUIDE = (ROOT / 'guide.md').read_text()\n"
        "def test_it():\n    assert (ROOT / 'notes.md').read_text()\n"
    )
    named = Group(name="good", inputs=("guide.md", "notes.md"), tests=("tests/good",))
    assert run(clone, named)[1].outcomes["good"].unnamed == ()
    for inputs, other in ((("guide.md",), "notes.md"), (("notes.md",), "guide.md")):
        plans, report = run(clone, dataclasses.replace(named, inputs=inputs))
        assert not report.failed
        assert report.outcomes["good"].unnamed == (other,)
        assert any(f"passed, no stamp: opens {other}" in line for line in table.lines(plans, report))


def test_tests_that_marks_leave_out_are_no_failure(clone: Path) -> None:
    good = Group(name="good", inputs=(), tests=("tests/good",))
    _, report = run(clone, good, pytest_args=("-k", "nothing"))

    assert not report.failed


def test_a_group_without_a_test_fails(clone: Path) -> None:
    (clone / "tests" / "good" / "test_a.py").write_text("")
    good = Group(name="good", inputs=(), tests=("tests/good",))
    _, report = run(clone, good)

    assert report.failed
    assert not report.outcomes["good"].passed


def test_a_group_without_an_outcome_is_a_failure(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "run", lambda _: None)
    _, report = run(clone, command("beside", "true", beside=True))

    assert report.failed


def test_a_group_within_the_folder_of_another_is_left_to_itself(clone: Path) -> None:
    folder = Group(name="folder", inputs=(), tests=("tests",))
    file = Group(name="file", inputs=(), tests=("tests/good/test_a.py",))

    assert files_of([folder], [folder, file], clone) == ["tests", "--ignore=tests/good/test_a.py"]
    assert files_of([file], [folder, file], clone) == ["tests/good/test_a.py"]
    assert files_of([folder, file], [folder, file], clone) == ["tests"]
    with pytest.raises(ValueError, match="tests/gone"):
        files_of([Group(name="gone", inputs=(), tests=("tests/gone",))], [], clone)


def test_the_table_names_the_hash_of_what_was_spared_and_the_reason_for_what_was_left_out() -> None:
    spared = Plan(group=command("spared", "true"), digest="0123456789abcdef", stamp=Stamp(0.0, "c0", 1.0))
    missing = Plan(group=command("e2e", "true", cluster=True), digest="1", missing="CLUSTER_TOOL")
    lines = table.lines([spared, missing], Report())

    assert "same inputs 0123456789ab passed 1970-01-01 00:00" in lines[1]
    assert "left out: CLUSTER_TOOL is not set" in lines[2]
