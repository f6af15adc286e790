"""The benchmark of backends measures the installed ones, and reports the reason for the others."""

import pytest

from benchmarks import backends
from benchmarks.backends import BACKENDS, Settings, measure
from benchmarks.turns import Speed, summary


def test_a_backend_that_is_not_installed_is_named_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("ALE, atari-v4", "EnvPool, 1 thread")
    monkeypatch.setattr(backends, "BACKENDS", [backend for backend in BACKENDS if backend.name in chosen])

    ale, envpool = measure(2, Settings(seconds=0.01, rounds=2))

    assert (ale.backend, envpool.backend) == chosen
    assert ale.steps_per_s is not None and ale.ratio == 1.0
    assert "pip install" in envpool.not_run and envpool.steps_per_s is None


def test_ratios_are_of_the_same_round() -> None:
    reference = "theirs"
    speeds = [(100.0, 200.0), (50.0, 150.0), (10.0, 10.0)]
    rounds = [{reference: Speed(slow, 9.0), "ours": Speed(fast, 3.0)} for slow, fast in speeds]

    row = summary("ours", 8, rounds, reference)

    assert (row.ratio, row.ratio_lowest, row.ratio_highest) == (2.0, 1.0, 3.0)
    assert (row.steps_per_s, row.cpu_us_per_step) == (150.0, 3.0)
