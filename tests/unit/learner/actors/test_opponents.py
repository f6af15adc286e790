"""Rows of opponents are answered by the versions of the league, all others by the newest policy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_learner.actors.inference import InferenceWorker
from kubebeast_learner.actors.opponents import Opponents
from kubebeast_learner.config import OpponentsConfig
from kubebeast_learner.league.league import NEWEST, League
from kubebeast_learner.models import Model
from tests.unit.learner.actors.test_inference import FakePool, make_worker
from tests.unit.learner.algorithm.learning_data import make_mlp

CPU = torch.device("cpu")


class ScriptedLeague(League):
    """A league that chooses its versions in turn, and the newest policy after them."""

    def __init__(self, model: Model) -> None:
        super().__init__(OpponentsConfig(opponents="uniform", league_interval=1), seed=1)
        self.begin(model, 0, [CPU], lambda device: copy_of(model))
        self._next: Iterator[Any] = iter(())

    def choose(self) -> Any:
        return next(self._next)

    def will_choose(self, *numbers: int) -> None:
        by_number = {version.number: version for version in self.table()}
        self._next = iter([by_number.get(number) for number in numbers])


def copy_of(model: Model) -> Model:
    copied = make_mlp(use_lstm=bool(model.core_state_size))
    copied.load_state_dict(model.state_dict())
    return copied.eval().requires_grad_(False)


def change(model: Model) -> None:
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3)


@pytest.fixture
def pool() -> FakePool:
    return FakePool()


def start(pool: FakePool, *, use_lstm: bool = False) -> tuple[InferenceWorker, ScriptedLeague, list[Model]]:
    """Starts a worker and returns it with a league of versions 0 and 1, and their models and that of the newest."""
    model = make_mlp(use_lstm=use_lstm)
    league, models = ScriptedLeague(model), [copy_of(model)]
    for version in (1, 2):
        change(model)
        models.append(copy_of(model))
        if version == 1:
            league.note_update(version, num_steps=1)
    worker, _ = make_worker(pool, model, opponents=Opponents(league, max_envs=8))
    return worker, league, models


def baselines(model: Model, batch: Any) -> list[float]:
    with torch.no_grad():
        output, _ = model(batch.model_inputs(), model.initial_state(batch.num_rows))
    values: list[float] = output.baseline[0].tolist()
    return values


def test_each_row_is_answered_by_the_policy_that_plays_it(pool: FakePool) -> None:
    worker, league, models = start(pool)
    league.will_choose(1, 0, NEWEST)
    opponent = [False, True, True, True, False]
    batch, reply = pool.ask([0, 1, 2, 3, 4], is_first=[True] * 5, opponent=opponent)
    worker.stop()
    by_model = [baselines(model, batch) for model in models]
    players = [2, 1, 0, 2, 2]
    np.testing.assert_allclose(reply.baseline, [by_model[player][row] for row, player in enumerate(players)], rtol=1e-5)
    assert reply.opponents is not None
    assert reply.opponents.tolist() == [NEWEST, 1, 0, NEWEST, NEWEST]


def test_an_opponent_plays_a_whole_episode(pool: FakePool) -> None:
    worker, league, _ = start(pool)
    league.will_choose(1, 0)
    numbers = [
        pool.ask([3], is_first=[is_first], opponent=[True])[1].opponents.tolist()  # type: ignore[union-attr]
        for is_first in (True, False, False, True, False)
    ]
    worker.stop()
    assert numbers == [[1], [1], [1], [0], [0]]


def test_core_states_of_unroll_starts_are_those_of_the_learning_rows(pool: FakePool) -> None:
    worker, league, _ = start(pool, use_lstm=True)
    league.will_choose(1)
    pool.ask([0, 1], is_first=[True, True], opponent=[True, False])
    _, reply = pool.ask([0, 1], opponent=[True, False], unroll_start=[False, True])
    worker.stop()
    assert reply.core_state is not None and reply.core_state.shape[0] == 1 and reply.core_state.any()


@pytest.mark.parametrize("use_lstm", [False, True])
def test_a_batch_of_opponents_alone_is_answered(pool: FakePool, use_lstm: bool) -> None:
    worker, league, models = start(pool, use_lstm=use_lstm)
    league.will_choose(0, 1)
    batch, reply = pool.ask([5, 6], is_first=[True, True], opponent=[True, True])
    worker.stop()
    expected = [baselines(models[0], batch)[0], baselines(models[1], batch)[1]]
    np.testing.assert_allclose(reply.baseline, expected, rtol=1e-5)
    assert (reply.core_state is not None) == use_lstm
    assert reply.core_state is None or len(reply.core_state) == 0
