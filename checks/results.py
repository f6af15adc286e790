"""What a call of pytest reported of its tests, for each test and for each group."""

import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence

from checks.groups import Group, owner


@dataclasses.dataclass(slots=True)
class Test:
    """One test, with its set-up and its end."""

    name: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the worker and of processes that it has waited for."""
    failed: bool = False
    skipped: bool = False


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
    return list(tests.values())


def by_group(tests: Iterable[Test], groups: Sequence[Group]) -> Mapping[str, list[Test]]:
    """The tests of each group by its name."""
    found: dict[str, list[Test]] = collections.defaultdict(list)
    for test in tests:
        if group := owner(groups, test.name.partition("::")[0]):
            found[group.name].append(test)
    return found


def slowest(tests: Iterable[Test], count: int = 10) -> list[Test]:
    return sorted(tests, key=lambda test: -test.seconds)[:count]
