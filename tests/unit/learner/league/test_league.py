"""The league holds earlier versions of the policy, rates them, and chooses opponents."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from kubebeast_learner.config import OpponentsConfig
from kubebeast_learner.league import elo
from kubebeast_learner.league.choice import probabilities
from kubebeast_learner.league.league import NEWEST, League
from kubebeast_learner.league.version import Version
from kubebeast_learner.models import Model
from kubebeast_learner.run.stats import RunStats
from tests.unit.learner.league.small_model import mlp_model
from tests.unit.learner.run.test_run_stats import UPDATE

CPU = torch.device("cpu")


def copy_of(model: Model) -> Model:
    copied = mlp_model()
    copied.load_state_dict(model.state_dict())
    return copied


def config_of(**settings: Any) -> OpponentsConfig:
    usual: dict[str, Any] = {"opponents": "uniform", "league_interval": 100}
    return OpponentsConfig(**usual | settings)


def begun(model: Model, *, version: int = 0, league: League | None = None, **settings: object) -> League:
    league = league or League(config_of(**settings), seed=1)
    league.begin(model, version, [CPU], lambda device: copy_of(model))
    return league


def resumed_from(league: League, **settings: object) -> League:
    resumed = League(config_of(**settings), seed=2)
    resumed.load_state_dict(league.state_dict())
    return resumed


def update(league: League, *versions: int, num_steps: int = 10) -> None:
    for version in versions:
        league.note_update(version, num_steps)


def first_weight(model: Model) -> float:
    return float(next(model.parameters()).detach().flatten()[0])


def test_the_policy_joins_at_the_beginning_and_at_each_interval() -> None:
    league = begun(mlp_model())
    update(league, *range(1, 35))
    assert [version.number for version in league.table()] == [0, 10, 20, 30]


def test_an_interval_counts_the_env_steps_of_updates_and_none_are_lost() -> None:
    league = begun(mlp_model())
    update(league, *range(1, 26), num_steps=8)
    assert [version.number for version in league.table()] == [0, 13, 25]  # after 104 and 200 steps


def test_skipped_updates_of_a_run_are_no_part_of_an_interval() -> None:
    league = begun(mlp_model(), league_interval=150)
    stats = RunStats(total_steps=1000, league=league)
    stats.add_update(replace(UPDATE, version=1))
    stats.add_update(replace(UPDATE, version=1, skipped=True))
    assert len(league.table()) == 1
    stats.add_update(replace(UPDATE, version=2))
    assert [version.number for version in league.table()] == [0, 2]


def test_an_update_of_many_intervals_is_one_version() -> None:
    league = begun(mlp_model())
    update(league, 1, 2, num_steps=250)
    update(league, 3, num_steps=99)
    assert [version.number for version in league.table()] == [0, 1, 2]


def test_a_resumed_league_goes_on_within_its_interval() -> None:
    league = begun(mlp_model())
    update(league, *range(1, 8))
    resumed = begun(mlp_model(), version=7, league=resumed_from(league))
    update(resumed, 8, 9)
    assert len(resumed.table()) == 1
    update(resumed, 10)
    assert [version.number for version in resumed.table()] == [0, 10]


def test_a_version_keeps_its_weights_while_the_policy_goes_on() -> None:
    model = mlp_model()
    league, before = begun(model), first_weight(model)
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    (version,) = league.table()
    assert first_weight(version.models[CPU]) == before != first_weight(model)
    assert float(next(iter(version.weights.values())).flatten()[0]) == before


def test_a_full_league_drops_a_version_between_close_neighbors_and_never_the_first_or_the_newest() -> None:
    league = begun(mlp_model(), league_size=4)
    update(league, *range(1, 101))
    numbers = [version.number for version in league.table()]
    assert len(numbers) == 4 and numbers[0] == 0 and numbers[-1] == 100
    assert max(after - before for before, after in itertools.pairwise(numbers)) <= 60


def test_a_smaller_size_on_resume_removes_versions_between_close_neighbors() -> None:
    league = begun(mlp_model())
    update(league, *range(1, 101))
    assert len(league.table()) == 11

    resumed = begun(mlp_model(), version=100, league=resumed_from(league, league_size=3))

    numbers = [version.number for version in resumed.table()]
    assert len(numbers) == 3 and numbers[0] == 0 and numbers[-1] == 100
    update(resumed, 110)
    assert len(resumed.table()) == 3


def test_ratings_follow_the_expected_score_and_the_first_version_stays() -> None:
    league = begun(mlp_model())
    update(league, 10, num_steps=100)
    league.add_game([10], 1.0)
    first, second = league.table()
    assert league.numbers()["elo"] == elo.START + elo.PACE / 2
    assert (first.rating, second.rating) == (elo.START, elo.START - elo.PACE / 2)
    league.add_game([0], -1.0)
    assert first.rating == elo.START
    assert league.numbers()["elo"] < elo.START + elo.PACE / 2


@pytest.mark.parametrize(("difference", "expected"), [(0, 0.5), (400, 10 / 11), (-400, 1 / 11), (1e9, 1.0)])
def test_the_expected_score_is_the_logistic_function_of_the_difference(difference: float, expected: float) -> None:
    assert elo.expected_score(1000 + difference, 1000) == pytest.approx(expected, abs=1e-9)
    assert math.isfinite(elo.change(1000 + difference, 1000, 0.0))


@pytest.mark.parametrize(("episode_return", "result"), [(0.5, "won"), (0.0, "drawn"), (-3.0, "lost")])
def test_the_sign_of_the_return_is_the_result(episode_return: float, result: str) -> None:
    league = begun(mlp_model())
    league.add_game([0], episode_return)
    (version,) = league.table()
    assert version.games == {"won": 0, "drawn": 0, "lost": 0} | {result: 1}


def test_games_against_the_newest_policy_and_against_versions_that_left_change_nothing() -> None:
    league = begun(mlp_model())
    league.add_game([NEWEST, 77], 1.0)
    (version,) = league.table()
    assert league.numbers()["elo"] == elo.START and sum(version.games.values()) == 0


def versions(*scores: float) -> list[Version]:
    return [Version(number, 1000.0, {}, {}, score) for number, score in enumerate(scores)]


def test_prioritized_opponents_are_those_that_the_policy_loses_against() -> None:
    assert probabilities("prioritized", versions(1.0, 0.5, 0.0)).tolist() == pytest.approx([0, 0.2, 0.8])
    assert probabilities("prioritized", versions(1.0, 1.0)).tolist() == [0.5, 0.5]
    assert probabilities("uniform", versions(1.0, 0.5, 0.0)).tolist() == pytest.approx([1 / 3] * 3)


def test_a_share_of_the_episodes_is_against_the_newest_policy() -> None:
    league = begun(mlp_model(), newest_share=0.25)
    update(league, 10, num_steps=100)
    chosen = Counter(None if version is None else version.number for version in (league.choose() for _ in range(4000)))
    assert chosen[None] / 4000 == pytest.approx(0.25, abs=0.03)
    assert chosen[0] / 4000 == pytest.approx(chosen[10] / 4000, abs=0.04)


@pytest.mark.parametrize("settings", [{"opponents": "newest"}, {"opponents": "uniform", "newest_share": 1.0}])
def test_versions_that_nobody_plays_have_no_ratings_and_no_models(settings: dict[str, Any]) -> None:
    league = begun(mlp_model(), **settings)
    update(league, 10, num_steps=100)
    assert {league.choose() for _ in range(50)} == {None}
    assert league.numbers() == {"versions": 2.0}
    assert all(version.weights and not version.models for version in league.table())


def test_versions_of_a_run_against_the_newest_policy_are_played_after_a_resume_with_other_opponents() -> None:
    model = mlp_model()
    league = begun(model, opponents="newest")
    resumed = begun(mlp_model(), version=5, league=resumed_from(league, newest_share=0.0))
    chosen = resumed.choose()
    assert chosen is not None and first_weight(chosen.models[CPU]) == first_weight(model)
    assert resumed.numbers() == {"elo": elo.START, "score": 0.5, "versions": 1.0}


@pytest.mark.filterwarnings("error")
def test_a_league_that_does_not_begin_has_the_numbers_of_its_checkpoint() -> None:
    league = begun(mlp_model())
    for _ in range(5):
        league.add_game([0], 1.0)
    finished = resumed_from(league)
    assert finished.numbers() == league.numbers()
    assert finished.state_dict() == league.state_dict()
    assert League(config_of(), seed=1).numbers() == {}


def test_a_resumed_league_goes_on_with_its_versions_and_ratings() -> None:
    model = mlp_model()
    league = begun(model)
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    update(league, 10, num_steps=100)
    league.add_game([10], 1.0)
    resumed = begun(mlp_model(), version=12, league=resumed_from(league))
    assert [version.number for version in resumed.table()] == [0, 10]
    assert resumed.numbers() == league.numbers()
    for before, after in zip(league.table(), resumed.table(), strict=True):
        assert first_weight(after.models[CPU]) == first_weight(before.models[CPU])
        assert (after.rating, after.score, after.games) == (before.rating, before.score, before.games)
    update(resumed, 20, num_steps=100)
    assert [version.number for version in resumed.table()] == [0, 10, 20]
