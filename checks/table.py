"""The table at the end of a run: results and times of the groups, and the reasons of those that were skipped."""

import datetime
from collections.abc import Iterable, Sequence

from checks.plan import Plan
from checks.results import slowest
from checks.run import Outcome, Report

HEADER = ("step", "result", "seconds", "CPU s", "compiled", "tests")


def lines(plans: Sequence[Plan], report: Report) -> list[str]:
    """Returns the lines of the table, with the slowest tests below it."""
    planned = {plan.group.name for plan in plans}
    rows = [(name, *_cells(outcome)) for name, outcome in report.outcomes.items() if name not in planned]
    rows += [_row(plan, report.outcomes.get(plan.group.name)) for plan in plans]
    table = _aligned([HEADER, *rows])
    if report.tests:
        table += ["", "slowest tests:"]
        table += [f"{test.seconds:8.1f} s {test.cpu_seconds:8.1f} CPU s  {test.name}" for test in slowest(report.tests)]
    return table


def _row(plan: Plan, outcome: Outcome | None) -> tuple[str, ...]:
    if outcome:
        return (plan.group.name, *_cells(outcome))
    if plan.missing:
        return (plan.group.name, f"left out: {plan.missing} is not set", "", "", "", "")
    if plan.within:
        return (plan.group.name, f"part of {plan.within}", "", "", "", "")
    if plan.stamp:
        day = datetime.datetime.fromtimestamp(plan.stamp.time, datetime.UTC).strftime("%Y-%m-%d %H:%M")
        return (plan.group.name, f"same inputs {plan.digest[:12]} passed {day}", "", "", "", "")
    return (plan.group.name, "did not finish", "", "", "", "")


def _cells(outcome: Outcome) -> tuple[str, ...]:
    compilations = outcome.cache_hits + outcome.cache_misses
    return (
        _result(outcome),
        f"{outcome.seconds:.1f}",
        f"{outcome.cpu_seconds:.1f}",
        f"{outcome.cache_hits} of {compilations} from the cache" if compilations else "",
        "" if outcome.num_tests is None else str(outcome.num_tests),
    )


def _result(outcome: Outcome) -> str:
    if not outcome.passed:
        return "FAILED"
    return f"passed, no stamp: opens {', '.join(outcome.unnamed)}" if outcome.unnamed else "passed"


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
