"""CPU time and usable CPUs are read for containers with and without a limit and for machines."""

import os
from pathlib import Path

import pytest

from kubebeast_common.process.cpu_time import read_cpu_time


def files(folder: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(autouse=True)
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


@pytest.mark.parametrize(
    ("contents", "used_s", "num_cpus"),
    [
        ({"cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "cpu.max": "150000 100000\n"}, 2.5, 1.5),
        ({"cpu.stat": "usage_usec 2500000\n", "cpu.max": "max 100000\n"}, 2.5, 8),
        ({"cpu.stat": "usage_usec 2500000\n"}, 2.5, 8),
        (
            {
                "cpuacct/cpuacct.usage": "3000000000\n",
                "cpu/cpu.cfs_quota_us": "200000\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            3.0,
            2,
        ),
        (
            {
                "cpuacct/cpuacct.usage": "3000000000\n",
                "cpu/cpu.cfs_quota_us": "-1\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            3.0,
            8,
        ),
        ({"cpu.stat": "usage_usec 0\n", "cpu.max": "1600000 100000\n"}, 0.0, 8),
    ],
)
def test_a_control_group_tells_what_was_used_and_what_may_be(
    tmp_path: Path, contents: dict[str, str], used_s: float, num_cpus: float
) -> None:
    assert read_cpu_time(files(tmp_path, contents), tmp_path / "none") == (used_s, num_cpus)


def test_without_a_control_group_the_machine_counts(tmp_path: Path) -> None:
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    # user nice system idle iowait irq softirq steal guest guest_nice
    stat = files(tmp_path, {"stat": "cpu  10 20 30 1000 500 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n"}) / "stat"
    time = read_cpu_time(tmp_path / "none", stat)
    assert time is not None
    assert time.used_s == pytest.approx(75 * tick_s) and time.num_cpus == 8


@pytest.mark.parametrize("content", ["", "mem 1 2 3\n", "cpu  ten\n"])
def test_a_system_that_does_not_tell_has_none(tmp_path: Path, content: str) -> None:
    assert read_cpu_time(tmp_path / "none", files(tmp_path, {"stat": content}) / "stat") is None
