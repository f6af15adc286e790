"""checks/groups.toml is complete: a change of any file selects all checks that depend on it."""

import operator
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.groups import ROOT, Group, load, matches, owner
from checks.reach import Reach
from tests.unit.repository.documents import repository_files
from tests.unit.repository.shell import make_targets

GROUPS = load()
DISTRIBUTIONS = ("common", "conformance", "envserver", "fleet", "learner", "observe", "runs")
MODULES = Reach(ROOT, [".", "deploy/helm", "native", "protos", *(f"services/{name}" for name in DISTRIBUTIONS)])
NAME = operator.attrgetter("name")
STYLE = ("set-up", "lint")
"""Groups that detect no wrong behavior."""
PRODUCT = ("services/", "native/", "protos/", "deploy/", "docker/")
BY_COMMAND = {
    "tests/e2e/test_first_install.py": "first-install",
    "tests/e2e": "end-to-end",
    "tests/monitoring": "monitoring",
}
"""Tests that run by the command of a group."""


def files() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in repository_files()]


def files_of_tests() -> list[str]:
    return [name for name in files() if Path(name).name.startswith("test_") and name.endswith(".py")]


def group_of(test: str) -> Group | None:
    for folder, name in BY_COMMAND.items():
        if matches([folder], test):
            return next(group for group in GROUPS if group.name == name)
    return owner(GROUPS, test)


def unnamed(test: str, group: Group) -> Iterator[str]:
    """Yields files that a test reaches but that are not inputs of its group."""
    yield from (str(path) for path in MODULES.of(ROOT / test) if not matches(group.inputs, str(path)))


def test_every_file_belongs_to_a_group() -> None:
    assert [name for name in files() if not any(matches(group.inputs, name) for group in GROUPS)] == []


def test_every_file_of_the_product_belongs_to_a_group_that_runs_it() -> None:
    groups = [group for group in GROUPS if group.name not in STYLE]
    product = [name for name in files() if name.startswith(PRODUCT)]

    assert [name for name in product if not any(matches(group.inputs, name) for group in groups)] == []


def test_every_file_of_tests_belongs_to_a_group() -> None:
    assert [test for test in files_of_tests() if group_of(test) is None] == []


@pytest.mark.parametrize("group", [each for each in GROUPS if not (each.nightly or each.always)], ids=NAME)
def test_a_group_names_all_that_its_tests_reach(group: Group) -> None:
    """Nightly groups omit some inputs on purpose."""
    found = {name for test in files_of_tests() if group_of(test) is group for name in unnamed(test, group)}

    assert sorted(found) == []


@pytest.mark.parametrize("group", [group for group in GROUPS if group.command], ids=NAME)
def test_the_command_of_a_group_is_here(group: Group) -> None:
    program, *arguments = group.command.split()

    if program == "make":
        assert re.sub("native-test-.san", "native-test", arguments[0]) in make_targets()
    else:
        assert (ROOT / program).stat().st_mode & 0o100


@pytest.mark.parametrize("group", GROUPS, ids=NAME)
def test_every_pattern_of_a_group_names_something(group: Group) -> None:
    patterns = [pattern.removeprefix("!") for pattern in group.inputs]
    idle = [pattern for pattern in patterns if not any(matches([pattern], name) for name in files())]

    assert idle == []
