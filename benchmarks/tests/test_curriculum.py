"""The benchmark of curricula trains, plays and draws at its smallest size."""

import csv
from pathlib import Path

import pytest

from benchmarks.curriculum import Settings, main


def test_runs_are_trained_once_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mazes.png"
    settings = Settings(
        runs=tmp_path, curricula=("uniform",), seeds=(1,), rooms=3, total_steps=600, episodes=1, out=out
    )

    main(settings)
    main(settings)

    assert "uniform" in capsys.readouterr().out
    assert out.stat().st_size > 0
    with open(out.with_suffix(".csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["curriculum"] for row in rows} == {"uniform"}
    assert len(list(tmp_path.glob("mazes-*/meta.json"))) == 1
