"""Plugin of pytest (`-p checks.pytest_results`) that writes each test's result, for groups that share one call.

CHECKS_RESULTS names the file: a line of JSON for each phase of a test that has ended. The last phase has the CPU time
of the test, and the files of the repository, other than Python's, that it and its module have opened in this process.
"""

import collections
import json
import os
import resource
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_FOLDER = f"{Path.cwd()}{os.sep}"
_CPU, _FILES = "cpu_seconds", "files"
_ERROR_LINES, _ERROR_COLUMNS = 6, 300


class _Watch:
    """Use of CPU time and files by the current test, or by the module that is being collected."""

    def __init__(self) -> None:
        self.files: dict[str, set[str]] = collections.defaultdict(set)
        """Opened files by the test or module that opened them."""
        self.current = ""
        self.is_worker = False
        """True if pytest-xdist has started this process."""
        self._began = 0.0

    def begin(self, name: str) -> None:
        self.current = name
        self._began = self._processor_time()

    def cpu_seconds(self) -> float:
        return self._processor_time() - self._began

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """A hook of sys.addaudithook."""
        name = arguments[0] if event == "open" else None
        if isinstance(name, str) and name.startswith(_FOLDER) and not name.endswith((".py", ".pyc")):
            self.files[self.current].add(name.removeprefix(_FOLDER))

    @staticmethod
    def _processor_time() -> float:
        """Returns the CPU seconds of this process and of its children that have ended."""
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)


_watch = _Watch()
sys.addaudithook(_watch.audit)


def pytest_configure(config: pytest.Config) -> None:
    _watch.is_worker = hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    _watch.begin(collector.nodeid)
    return (yield)


def pytest_runtest_logstart(nodeid: str) -> None:
    _watch.begin(nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        module = item.nodeid.partition("::")[0]
        files = _watch.files.pop(item.nodeid, set()) | _watch.files.pop(module, set())
        report.user_properties += [(_CPU, _watch.cpu_seconds()), (_FILES, sorted(files))]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes a line; pytest-xdist calls it in a worker, and again in the main process, which alone writes."""
    if _watch.is_worker or not (path := os.environ.get("CHECKS_RESULTS")):
        return
    properties = dict(report.user_properties)
    line = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "error": _error(report) if report.failed else "",
        "seconds": report.duration,
        _CPU: properties.get(_CPU, 0.0),
        _FILES: properties.get(_FILES, []),
    }
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _error(report: pytest.TestReport) -> str:
    """Returns the place and the message of the error, which pytest's own report has whole."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash or report.longreprtext).strip().splitlines()
    return "\n".join(line[:_ERROR_COLUMNS] for line in lines[:_ERROR_LINES])
