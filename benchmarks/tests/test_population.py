"""The comparison of population based training with a random search runs as a whole."""

import csv
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.population import Found, Settings, compared, content_of, line_to, main


def test_both_searches_train_the_same_steps_and_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    settings = Settings(
        tasks=("CartPole-v1",),
        seeds=(1,),
        members=4,
        total_steps=2000,
        interval=2000,
        episodes=2,
        folder=tmp_path / "sweeps",
        out=tmp_path / "population.png",
    )

    main(settings)

    with open(tmp_path / "population.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    ends = {kind: [int(row["end"]) for row in rows if row["search"] == kind] for kind in ("random", "pbt")}
    assert ends == {"random": [2000], "pbt": [2000]}
    assert (tmp_path / "population.png").stat().st_size > 10_000


def test_the_schedule_of_a_member_begins_with_the_one_that_it_has_copied() -> None:
    rows = {
        "0": {"trial": "0", "parent": ""},
        "1": {"trial": "1", "parent": ""},
        "2": {"trial": "2", "parent": "001-seed7"},
        "12": {"trial": "12", "parent": "002-seed7"},
    }

    assert [row["trial"] for row in line_to(rows["12"], rows)] == ["1", "2", "12"]


def test_the_means_of_the_seeds_are_compared() -> None:
    returns = {"random": (1.0, 3.0), "pbt": (2.0, 2.0)}
    found = [
        Found(task="Catch", search=search, seed=seed, mean_return=each, score=0.0, cpu_s=1.0)
        for search, of_seeds in returns.items()
        for seed, each in enumerate(of_seeds)
    ]

    assert compared("Catch", found) == "Catch: random 2.0 ± 1.0, pbt 2.0 ± 0.0; pbt is ahead with 1 of 2 seeds"


@pytest.mark.parametrize(("schedules", "constant"), [(True, False), (False, True)])
def test_rates_stay_constant_without_schedules(schedules: bool, constant: bool) -> None:
    for kind in ("random", "pbt"):
        given = content_of(Settings(schedules=schedules), "Catch", kind, seed=1)["settings"]
        found = [given.get(f"{name}_schedule") == "constant" for name in ("learning_rate", "entropy")]
        assert found == [constant, constant]
