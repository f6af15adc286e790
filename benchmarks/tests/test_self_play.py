"""The benchmark of self-play trains, plays and draws at its smallest size."""

import csv
from pathlib import Path

import pytest

from benchmarks.self_play import Settings, main


def test_runs_are_trained_once_played_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tictactoe.png"
    settings = Settings(runs=tmp_path, total_steps=600, league_interval=200, num_actors=8, episodes=4, out=out)

    main(settings)
    main(settings)

    assert "perfect_tictactoe" in capsys.readouterr().out
    assert out.stat().st_size > 0
    with open(out.with_suffix(".csv"), newline="") as file:
        assert {row["seed"] for row in csv.DictReader(file)} == {"1"}
    assert len(list(tmp_path.glob("tictactoe-*/meta.json"))) == 1
