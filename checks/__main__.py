"""Runs the checks that a change requires.

    make checks                       all checks that must pass before a change lands
    make test                         those that need only compilers and Python, without the tests marked slow
    python3 -m checks --list          the groups that would run, and the hash of each group's inputs
    python3 -m checks --only chart    one group
    CI_ALL=1 make checks              everything, regardless of earlier passes

CHECKS_CACHE names the folder of the compiler's cache and of the stamps. CLUSTER_TOOL names a program that
starts a cluster; if it is not set, the groups that need a cluster are left out. Uses only Python's standard library,
because it installs everything else.
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from checks import groups, table
from checks.groups import ROOT
from checks.inputs import Tree
from checks.plan import Plan, make_plans
from checks.run import Report, Run
from checks.stamps import Stamps

_MINUTE_S = 60.0


def main() -> int:
    options = _parse(sys.argv[1:])
    began = time.monotonic()

    def show(line: str) -> None:
        print(f"checks, after {time.monotonic() - began:.0f} s: {line}", flush=True)

    every = groups.load()
    tree = Tree(ROOT)
    stamps = Stamps(options.cache / "checks")
    wanted = [group for group in every if group.name in options.only] if options.only else every
    plans = make_plans(wanted, tree, stamps, os.environ, "make test" if options.fast else "all")
    _announce(plans, stamps)
    if not _is_writable(options.cache):
        show(f"{options.cache} cannot be written: all code is compiled again, and checks that pass will run again")
    if options.list:
        return 0
    pytest_args = [*(["-m", "not slow"] if options.fast else []), *options.pytest_args]
    env = {"CHECKS_CACHE": str(options.cache)}
    run = Run(
        plans,
        groups=every,
        files=tree.files,
        root=ROOT,
        env=env,
        show=show,
        pytest_args=pytest_args,
        workers=options.workers,
    )
    report = run.run()
    print("\n".join(["", *table.lines(plans, report), ""]))
    if options.write_stamps:
        _write(stamps, plans, report, tree, show)
    for failure in report.failures:
        show(failure)
    show("FAILED" if report.failed else "passed")
    return int(report.failed)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="checks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=os.environ.get("CHECKS_CACHE"), help="default: CHECKS_CACHE")
    parser.add_argument("--fast", action="store_true", help="run the checks of `make test`")
    parser.add_argument("--list", action="store_true", help="print the groups that would run, and exit")
    parser.add_argument("--only", nargs="+", default=[], metavar="GROUP", help="run only these groups of groups.toml")
    parser.add_argument("--workers", type=int, default=4, help="number of parallel tests (default: %(default)s)")
    parser.add_argument("--pytest-args", type=shlex.split, default=[], help="more arguments for pytest, as one word")
    parser.add_argument("--write-stamps", action="store_true", help="record the groups that passed; for .ci/run only")
    options = parser.parse_args(words)
    if options.cache is None:
        parser.error("neither --cache nor CHECKS_CACHE is set")
    if options.write_stamps and (options.fast or options.only or options.pytest_args):
        parser.error("--write-stamps is for whole runs: leave out --fast, --only and --pytest-args")
    unknown = set(options.only) - {group.name for group in groups.load()}
    if unknown:
        parser.error(f"--only: groups.toml has no {', '.join(sorted(unknown))}")
    return options


def _announce(plans: Sequence[Plan], stamps: Stamps) -> None:
    """Prints the groups that run, with the duration of their newest pass."""
    for plan in plans:
        newest = stamps.newest(plan.group.name)
        last = f"  {newest.seconds / _MINUTE_S:.1f} min the last time" if newest and plan.runs else ""
        state = "runs" if plan.runs else _reason(plan)
        print(f"{plan.group.name:24} {plan.digest[:12]} {state}{last}", flush=True)


def _reason(plan: Plan) -> str:
    if plan.missing:
        return f"left out: {plan.missing}"
    return f"part of {plan.within}" if plan.within else "spared"


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _write(stamps: Stamps, plans: Sequence[Plan], report: Report, before: Tree, show: Callable[[str], None]) -> None:
    after = Tree(ROOT)
    if report.failed:
        show("no stamps: the run has failed")
    elif not after.is_clean() or after.commit() != before.commit() or after.files != before.files:
        show("no stamps: the clone has uncommitted or untracked files, or has changed meanwhile")
    else:
        for plan in plans:
            outcome = report.outcomes.get(plan.within or plan.group.name)
            if outcome and not outcome.unnamed:
                try:
                    stamps.write(plan.group.name, plan.digest, commit=after.commit(), seconds=outcome.seconds)
                except OSError as error:
                    show(f"no stamps: {error}")
                    return


if __name__ == "__main__":
    sys.exit(main())
