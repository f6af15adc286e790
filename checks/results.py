"""What a call of pytest reported of its tests, for each test and for each group."""

import collections
import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from checks.groups import Group, matches, owner


@dataclasses.dataclass(slots=True)
class Test:
    """One test, with its set-up and its end."""

    name: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the worker and of processes that it has waited for."""
    failed: bool = False
    skipped: bool = False
    files: set[str] = dataclasses.field(default_factory=set)
    """Files of the repository that the test has opened in its own process."""


def read(lines: Iterable[str]) -> list[Test]:
    """Of the file that checks.pytest_results has written."""
    tests: dict[str, Test] = {}
    for line in lines:
        phase = json.loads(line)
        test = tests.setdefault(phase["test"], Test(phase["test"]))
        test.seconds += phase["seconds"]
        test.cpu_seconds += phase["cpu_seconds"]
        test.failed |= phase["outcome"] == "failed"
        test.skipped |= phase["outcome"] == "skipped"
        test.files.update(phase["files"])
    return list(tests.values())


def by_group(tests: Iterable[Test], groups: Sequence[Group]) -> Mapping[str, list[Test]]:
    """The tests of each group by its name."""
    found: dict[str, list[Test]] = collections.defaultdict(list)
    for test in tests:
        if group := owner(groups, test.name.partition("::")[0]):
            found[group.name].append(test)
    return found


def unnamed_inputs(group: Group, tests: Iterable[Test], repository: Collection[str]) -> list[str]:
    """Files of the repository that the group's tests have opened and that are no inputs of it."""
    opened = {name for test in tests for name in test.files}
    return sorted(name for name in opened if name in repository and not matches(group.inputs, name))


def slowest(tests: Iterable[Test], count: int = 10) -> list[Test]:
    return sorted(tests, key=lambda test: -test.seconds)[:count]
