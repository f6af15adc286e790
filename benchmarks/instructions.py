"""Instruction counts of the core's hot operations, compared with recorded bounds.

    python -m benchmarks.instructions            # fails if a count is above its bound
    python -m benchmarks.instructions --record   # records the counts as bounds

callgrind counts the instructions of native/instructions: decoding a message, batching steps, gathering a rollout batch
of whole stacks and of single frames. The C library is excluded, as its copy routines depend on the CPU; the program
itself counts allocations. The counts are therefore the same on every x86-64 machine with Debian 12's compiler, at any
load. Elsewhere nothing is checked.
"""

import dataclasses
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import tyro

from benchmarks import report

NATIVE = Path(__file__).resolve().parents[1] / "native"
BOUNDS = NATIVE / "instructions" / "bounds.json"
TIMES = {"decode": 20, "batch": 20, "gather": 10, "gather_single_frames": 10}
"""Operations of native/instructions, with their numbers of repetitions."""
TOLERANCE = 1.02
"""Allowed ratio of instructions to their bound, for security updates of compilers and libraries."""
COMPILER = "12."
_NOT_OURS = re.compile(r"/(libc|ld-linux[^/]*)\.so")


@dataclasses.dataclass(frozen=True, slots=True)
class Count:
    """The counts of one operation."""

    instructions: float
    allocations: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    operation: str
    instructions: float
    most_instructions: float | None
    allocations: float
    most_allocations: float | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    record: bool = False
    """Write the counts to native/instructions/bounds.json before the comparison, so that they become the bounds."""


def reason_to_skip() -> str:
    """Returns the reason why this machine's counts are not comparable with the recorded ones; empty if they are."""
    release = Path("/etc/os-release")
    is_debian = release.exists() and {"ID=debian", 'VERSION_ID="12"'} <= set(release.read_text().splitlines())
    if not is_debian or platform.machine() != "x86_64":
        return "bounds are for Debian 12 on x86-64"
    missing = [name for name in ("valgrind", "g++", "cmake") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    version = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return "" if version.startswith(COMPILER) else f"bounds are for g++ {COMPILER}*, this is {version}"


def build() -> Path:
    """Builds the program of native/instructions and returns its path."""
    for command in (["cmake", "--preset", "instructions"], ["cmake", "--build", "--preset", "instructions"]):
        done = subprocess.run(command, cwd=NATIVE, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
    return NATIVE / "build" / "instructions" / "instructions" / "instructions"


def count(program: Path, operation: str, times: int) -> Count:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "callgrind.out")
        callgrind = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            "--toggle-collect=kubebeast_counted",
        ]
        plain = ["--compress-strings=no", "--compress-pos=no"]
        command = [*callgrind, *plain, str(program), operation, str(times)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return Count(own_instructions(out.read_text()) / times, int(done.stdout) / times)


def own_instructions(text: str) -> int:
    """Returns the instructions of all functions outside the C library in the text of a file of callgrind.

    The file must not have compressed names or positions (its manual, "Callgrind Format Specification").
    """
    is_ours, is_call = True, False
    instructions = 0
    for line in text.partition("\nsummary:")[2].splitlines()[1:]:
        key, _, value = line.partition("=")
        if key == "ob":
            is_ours = _NOT_OURS.search(value) is None
        elif key == "calls":
            is_call = True  # the costs in the next line are the callee's
        elif line[:1].isdigit():
            instructions += int(line.split()[1]) if is_ours and not is_call else 0
            is_call = False
    return instructions


def excesses(counts: Mapping[str, Count], bounds: Mapping[str, Count]) -> list[str]:
    """Returns a sentence for each count above its bound, and for each operation without a bound."""
    sentences = []
    for operation, counted in counts.items():
        bound = bounds.get(operation)
        if bound is None:
            sentences.append(f"{operation} has no bound")
            continue
        if counted.instructions > bound.instructions * TOLERANCE:
            more = counted.instructions / bound.instructions - 1
            sentences.append(
                f"{operation} takes {counted.instructions:,.0f} instructions, {more:.1%} over {bound.instructions:,.0f}"
            )
        if counted.allocations > bound.allocations:
            sentences.append(f"{operation} allocates {counted.allocations:g} times, not {bound.allocations:g}")
    return sentences


def read_bounds(path: Path = BOUNDS) -> dict[str, Count]:
    recorded = json.loads(path.read_text()) if path.exists() else {}
    return {operation: Count(**values) for operation, values in recorded.items()}


def write_bounds(counts: Mapping[str, Count], path: Path = BOUNDS) -> None:
    path.write_text(json.dumps({name: dataclasses.asdict(each) for name, each in counts.items()}, indent=2) + "\n")


def main() -> int:
    settings = tyro.cli(Settings, description=__doc__)
    if reason := reason_to_skip():
        print(f"instructions are not counted: {reason}")
        return 0
    program = build()
    counts = {operation: count(program, operation, times) for operation, times in TIMES.items()}
    if settings.record:
        write_bounds(counts)
    bounds = read_bounds()
    report.print_table(
        "an operation of the core", [_row(name, each, bounds.get(name)) for name, each in counts.items()]
    )
    found = excesses(counts, bounds)
    for sentence in found:
        print(sentence, file=sys.stderr)
    if found:
        print("if that is the price of something: python -m benchmarks.instructions --record", file=sys.stderr)
    return 1 if found else 0


def _row(operation: str, counted: Count, bound: Count | None) -> Row:
    return Row(
        operation=operation,
        instructions=counted.instructions,
        most_instructions=None if bound is None else bound.instructions * TOLERANCE,
        allocations=counted.allocations,
        most_allocations=None if bound is None else bound.allocations,
    )


if __name__ == "__main__":
    sys.exit(main())
