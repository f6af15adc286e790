"""A plugin of pytest (`-p checks.pytest_results`) that writes each test's result, for groups that share one call.

CHECKS_RESULTS names the file: a line of JSON for each phase of a test that has ended.
"""

import json
import os
import resource
from collections.abc import Generator
from pathlib import Path

import pytest

_CPU = "cpu_seconds"


class _Clock:
    """Processor time of this process and of its children that have ended."""

    began = 0.0

    @staticmethod
    def now() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)


_clock = _Clock()


def pytest_runtest_logstart() -> None:
    _clock.began = _clock.now()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_CPU, _clock.now() - _clock.began))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called in a worker of pytest-xdist, and again in the process that started it, which alone writes."""
    if "PYTEST_XDIST_WORKER" in os.environ or not (path := os.environ.get("CHECKS_RESULTS")):
        return
    line = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "seconds": report.duration,
        _CPU: dict(report.user_properties).get(_CPU, 0.0),
    }
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
