"""Results of a call of pytest, by test and by group."""

import collections
import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from checks.groups import Group, matches, owner


@dataclasses.dataclass(slots=True)
class Test:
    """One test, with its setup and teardown."""

    name: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """CPU seconds of the worker and of the processes that it has waited for."""
    failed: bool = False
    skipped: bool = False
    error: str = ""
    """Place and message of the first error, if the test has failed."""
    files: set[str] = dataclasses.field(default_factory=set)
    """Files of the repository that the test has opened in the worker's process."""


def read(lines: Iterable[str]) -> list[Test]:
    """Reads the tests from the lines that checks.pytest_results has written."""
    tests: dict[str, Test] = {}
    for line in lines:
        phase = json.loads(line)
        test = tests.setdefault(phase["test"], Test(phase["test"]))
        test.seconds += phase["seconds"]
        test.cpu_seconds += phase["cpu_seconds"]
        test.failed |= phase["outcome"] == "failed"
        test.skipped |= phase["outcome"] == "skipped"
        test.error = test.error or phase["error"]
        test.files.update(phase["files"])
    return list(tests.values())


def by_group(tests: Iterable[Test], groups: Sequence[Group]) -> Mapping[str, list[Test]]:
    """Returns the tests of each group, by the group's name."""
    found: dict[str, list[Test]] = collections.defaultdict(list)
    for test in tests:
        if group := owner(groups, test.name.partition("::")[0]):
            found[group.name].append(test)
    return found


def unnamed_inputs(group: Group, tests: Iterable[Test], repository: Collection[str]) -> list[str]:
    """Returns the files of the repository that the group's tests have opened but that are not among its inputs."""
    opened = {name for test in tests for name in test.files}
    return sorted(name for name in opened if name in repository and not matches(group.inputs, name))


def slowest(tests: Iterable[Test], count: int = 10) -> list[Test]:
    return sorted(tests, key=lambda test: -test.seconds)[:count]
