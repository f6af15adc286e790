"""Failures of the check of instruction counts, and the reader of callgrind's files."""

from pathlib import Path

import pytest

from benchmarks import instructions
from benchmarks.instructions import Count, excesses, own_instructions, read_bounds, write_bounds

BOUNDS = {"decode": Count(1000.0, 9.0)}

CALLGRIND = """\
events: Ir
summary: 700

ob=/usr/lib/x86_64-linux-gnu/liblz4.so.1.9.4
fl=???
fn=LZ4_decompress_safe
0 100
cob=/usr/lib/x86_64-linux-gnu/libc.so.6
cfn=memcpy
calls=6 264
0 400
3 7

ob=/usr/lib/x86_64-linux-gnu/libc.so.6
fn=memcpy
0 400

ob=/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
fn=_dl_runtime_resolve
0 93

ob=/build/instructions
fn=kubebeast::StreamCodec::Decode
0 60
0 40

totals: 700
"""


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        (Count(1021.0, 9.0), "decode takes 1,021 instructions, 2.1% over 1,000"),
        (Count(500.0, 10.0), "decode allocates 10 times, not 9"),
    ],
)
def test_a_count_above_its_bound_is_named(counted: Count, words: str) -> None:
    assert excesses({"decode": counted}, BOUNDS) == [words]


def test_counts_up_to_the_bound_and_a_little_over_it_pass() -> None:
    assert excesses({"decode": Count(1019.0, 9.0)}, BOUNDS) == []
    assert excesses({"decode": Count(10.0, 1.0)}, BOUNDS) == []


def test_an_operation_without_a_bound_does_not_pass() -> None:
    assert excesses({"gather": Count(1.0, 1.0)}, BOUNDS) == ["gather has no bound"]


def test_own_costs_count_and_neither_those_of_the_c_library_nor_of_what_is_called() -> None:
    assert own_instructions(CALLGRIND) == 100 + 7 + 60 + 40


def test_every_operation_has_a_recorded_bound(tmp_path: Path) -> None:
    bounds = read_bounds()
    assert bounds.keys() == instructions.TIMES.keys()
    write_bounds(bounds, tmp_path / "bounds.json")
    assert read_bounds(tmp_path / "bounds.json") == bounds


@pytest.mark.parametrize(("instructions_each", "status"), [(1000.0, 0), (2000.0, 1)])
def test_the_command_fails_where_a_count_is_above_its_bound(
    instructions_each: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["instructions"])
    monkeypatch.setattr(instructions, "reason_to_skip", lambda: "")
    monkeypatch.setattr(instructions, "build", lambda: Path("program"))
    monkeypatch.setattr(instructions, "count", lambda *_: Count(instructions_each, 0.0))
    monkeypatch.setattr(instructions, "read_bounds", lambda: dict.fromkeys(instructions.TIMES, Count(1000.0, 0.0)))
    assert instructions.main() == status
    assert ("decode takes 2,000 instructions" in capsys.readouterr().err) == (status == 1)


def test_a_machine_of_another_kind_is_left_alone_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["instructions"])
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert instructions.main() == 0
    assert "instructions are not counted: bounds are for Debian 12 on x86-64" in capsys.readouterr().out
