"""Repeats tests beside processes that keep the CPU busy, and reports the number of failures of each test.

A test that does not depend on timing passes at any load; one that depends on the machine's load fails in some rounds.
"""

import argparse
import collections
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from checks import results
from checks.groups import ROOT
from checks.measure import path_with_tools

_NO_TESTS = (2, 3, 4, 5)
"""Exit statuses of pytest that do not depend on chance: interrupted, internal error, wrong usage, no test."""


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Runs `count` processes that keep the CPU busy until the end of the block."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run_once(words: Sequence[str]) -> tuple[int, list[results.Test], str]:
    """Returns the exit status, tests and output of one call of pytest with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results")
        pytest = [sys.executable, "-m", "pytest", "-p", "checks.pytest_results", "-p", "no:cacheprovider", *words]
        env = {**os.environ, "CHECKS_RESULTS": str(path), "PATH": path_with_tools(ROOT)}
        done = subprocess.run(pytest, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        tests = results.read(path.read_text().splitlines() if path.exists() else [])
        return done.returncode, tests, done.stdout + done.stderr


def main() -> int:
    options = _parse()
    began = time.monotonic()
    failures: collections.Counter[str] = collections.Counter()
    rounds = failed_rounds = 0
    with busy_loops(options.busy_loops):
        while rounds < options.rounds and time.monotonic() - began < options.minutes * 60.0:
            round_began = time.monotonic()
            status, tests, output = run_once(options.tests)
            if status in _NO_TESTS:
                print(output)
                return status
            rounds += 1
            failed_rounds += status != 0
            failures.update(test.name for test in tests if test.failed)
            if status != 0:
                print(output)
            seconds = time.monotonic() - round_began
            left = min((options.rounds - rounds) * seconds, options.minutes * 60.0 - (time.monotonic() - began))
            print(
                f"round {rounds} of {options.rounds}: {'FAILED' if status else 'passed'} in {seconds:.0f} s, "
                f"{failed_rounds} failed so far, at most {max(left, 0.0) / 60.0:.0f} min left",
                flush=True,
            )
    for name, count in failures.most_common():
        print(f"{count} of {rounds} failed: {name}")
    print(f"{failed_rounds} of {rounds} rounds failed beside {options.busy_loops} busy loops")
    return int(failed_rounds > 0)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="flaky", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--busy-loops", type=int, default=4)
    parser.add_argument("tests", nargs="+", help="arguments of pytest")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
