"""Runner of the planned groups: most in turn, some beside them, and one call of pytest for all groups of tests."""

import dataclasses
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from checks import measure, results
from checks.groups import Group
from checks.measure import Measured, path_with_tools
from checks.plan import Plan

BIN = Path(".venv", "bin")
SETTINGS = "KUBEBEAST_"
"""Prefix of environment variables that are settings of the commands: those of a developer must reach no check."""
OURS = ("CI_ALL", "CLUSTER_TOOL")
"""Environment variables of the runner that tests must not see."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one group."""

    passed: bool
    seconds: float
    cpu_seconds: float
    cache_hits: int = 0
    cache_misses: int = 0
    num_tests: int | None = None
    """Number of tests; None if the group has a command instead."""
    unnamed: tuple[str, ...] = ()
    """Files that the tests opened and that are no inputs of the group: without them no stamp can be trusted."""


@dataclasses.dataclass(slots=True)
class Report:
    """The result of a run."""

    outcomes: dict[str, Outcome] = dataclasses.field(default_factory=dict)
    """Outcomes by group; a group that did not finish is missing."""
    tests: list[results.Test] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)
    """A line or several for each cause of a failure."""

    @property
    def failed(self) -> bool:
        return bool(self.failures)


class Run:
    """A run of the planned groups.

    Args:
        groups: All groups of the table, so that the tests of groups without a plan can be excluded.
        files: All files of the repository; those that a test opens must be inputs of its group.
        show: Called with a line for each group that begins or ends.
        pytest_args: Further arguments of the shared call of pytest.
        workers: Number of tests that run concurrently.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        *,
        groups: Sequence[Group],
        files: Collection[str],
        root: Path,
        env: Mapping[str, str],
        show: Callable[[str], None],
        pytest_args: Sequence[str] = (),
        workers: int = 4,
    ) -> None:
        self.report = Report()
        self._stopped = False
        self._gates = {plan.group.name for plan in plans if plan.group.always}
        for plan in plans:
            self._gates |= {*plan.group.packages, *plan.group.needs}
        self._plans = [plan for plan in plans if plan.runs]
        self._all = groups
        self._root = root
        self._files = files
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        self._env = {**inherited, **env, "PATH": path_with_tools(root)}
        self._show = show
        self._pytest_args = pytest_args
        self._workers = workers

    def run(self) -> Report:
        """Runs the groups and blocks until all have ended.

        After a failure, the other groups still run, so that one run finds all failures; but if a group that always
        runs, such as the setup, or a command of `packages` or `needs` fails, no further group begins.
        """
        for plan in self._plans:
            self._once(plan.group.packages)
        beside = [
            threading.Thread(target=self._run_beside, args=(plan.group,)) for plan in self._plans if plan.group.beside
        ]
        for thread in beside:
            thread.start()
        self._run_in_turn()
        for thread in beside:
            thread.join()
        missing = [plan.group.name for plan in self._plans if plan.group.name not in self.report.outcomes]
        if missing:
            self.report.failures.append(f"did not finish: {', '.join(missing)}")
        return self.report

    def _once(self, commands: Sequence[str]) -> None:
        """Runs the commands that this run has not run yet. Not thread-safe: groups that run beside others have none."""
        for command in commands:
            if command not in self.report.outcomes:
                self._command(command, command, sys.stdout.fileno())

    def _run_in_turn(self) -> None:
        """Runs commands before tests: they compile faster alone, and findings of a linter come early."""
        for plan in self._plans:
            if plan.group.command and not plan.group.beside:
                self._once(plan.group.needs)
                self._command(plan.group.name, plan.group.command, sys.stdout.fileno())
        groups = [plan.group for plan in self._plans if not plan.group.command]
        for group in groups:
            self._once(group.needs)
        if groups and not self._stopped:
            self._tests(groups)

    def _run_beside(self, group: Group) -> None:
        with tempfile.TemporaryFile() as log:
            self._command(group.name, group.command, log.fileno())
            outcome = self.report.outcomes.get(group.name)
            if outcome and not outcome.passed:
                log.seek(0)
                self._show(log.read().decode(errors="replace"))

    def _command(self, name: str, command: str, output: int) -> None:
        if self._stopped:
            return
        self._show(f"{name} begins")
        with os.fdopen(os.dup(output), "wb") as file:
            taken = measure.run(["bash", "-euo", "pipefail", "-c", command], env=self._env, cwd=self._root, output=file)
        self._note(name, taken)

    def _note(self, name: str, taken: Measured, num_tests: int | None = None) -> None:
        passed = taken.status == 0
        self.report.outcomes[name] = Outcome(
            passed, taken.seconds, taken.cpu_seconds, taken.cache_hits, taken.cache_misses, num_tests
        )
        self._stopped |= not passed and name in self._gates
        if passed:
            self._show(f"{name} passed in {taken.seconds:.0f} s")
        else:
            self._fail(f"{name} FAILED with status {taken.status} in {taken.seconds:.0f} s")

    def _fail(self, cause: str) -> None:
        self._show(cause)
        self.report.failures.append(cause)

    def _tests(self, groups: Sequence[Group]) -> None:
        self._show(f"tests of {', '.join(group.name for group in groups)} begin")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results")
            words = [str(BIN / "python"), "-m", "pytest", "-p", "checks.pytest_results", "-q"]
            words += ["-n", str(self._workers), "--dist", "worksteal", *self._pytest_args]
            env = {name: value for name, value in self._env.items() if name not in OURS}
            env["CHECKS_RESULTS"] = str(path)
            taken = measure.run([*words, *test_files(groups, self._all, self._root)], env=env, cwd=self._root)
            self.report.tests = results.read(path.read_text().splitlines() if path.exists() else [])
        self.report.failures += [f"{test.name}: {test.error}" for test in self.report.tests if test.failed]
        # 5: no test was collected, for example if -m deselects all.
        self._note("pytest", dataclasses.replace(taken, status=0 if taken.status == 5 else taken.status))
        found = results.by_group(self.report.tests, groups)
        for group in groups:
            tests = found.get(group.name, [])
            # If the call did not finish, the missing tests are unknown.
            passed = taken.status in (0, 1, 5) and not any(test.failed for test in tests)
            if not tests and not self._pytest_args:
                self._fail(f"{group.name} has no tests")
                passed = False
            narrow = group.always or group.nightly
            unnamed = [] if narrow else results.unnamed_inputs(group, tests, self._files)
            if unnamed:
                self._show(f"{group.name} gets no stamp: its inputs lack {', '.join(unnamed)}, which its tests open")
            self.report.outcomes[group.name] = Outcome(
                passed=passed,
                seconds=sum(test.seconds for test in tests),
                cpu_seconds=sum(test.cpu_seconds for test in tests),
                num_tests=len(tests),
                unnamed=tuple(unnamed),
            )


def test_files(groups: Sequence[Group], every: Sequence[Group], root: Path) -> list[str]:
    """Returns arguments of pytest that select the tests of these groups, and none of the others in `every`.

    Raises:
        ValueError: If the groups name files or folders that do not exist.
    """
    wanted = {pattern for group in groups for pattern in group.tests}
    others = {pattern for group in every for pattern in group.tests} - wanted
    ignored = [f"--ignore={pattern}" for pattern in sorted(others) if any(_holds(each, pattern) for each in wanted)]
    named = [pattern for pattern in sorted(wanted) if not any(_holds(each, pattern) for each in wanted)]
    missing = [pattern for pattern in named if not (root / pattern).exists()]
    if missing:
        raise ValueError(f"groups.toml names tests that are not there: {shlex.join(missing)}")
    return [*named, *ignored]


def _holds(folder: str, path: str) -> bool:
    return path != folder and path.startswith(f"{folder}/")
