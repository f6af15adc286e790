"""Agents that take turns pass the native pool: an unroll has the turns of one agent, and V-trace sees their rewards."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.actors.remote.actors import RemoteActors, make_pool
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.algorithm.vtrace import from_importance_weights
from kubebeast_learner.config import LearnerConfig, ModelConfig, OpponentsConfig, RolloutConfig
from kubebeast_learner.league.league import NEWEST, League
from kubebeast_learner.models import Model, make_model
from tests.integration.toll import FOLD, TOLL
from tests.unit.native.native_client import PATIENCE_MS
from tests.unit.native.native_host import hosted

T = 3


def model_of(env: Any, *, use_lstm: bool = False) -> Model:
    torch.manual_seed(0)
    config = ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=use_lstm)
    return make_model(env.spec_observation, env.spec_action, config)


@contextlib.contextmanager
def playing(
    env: Any, model: Model, *, batch_size: int, opponents: str = "", newest_share: float = 0.5
) -> Iterator[tuple[RemoteActors, League | None]]:
    config = LearnerConfig(
        rollout=RolloutConfig(unroll_length=T, batch_size=batch_size),
        opponents=OpponentsConfig(opponents=opponents, newest_share=newest_share),
    )
    league = League(config.opponents, seed=1) if opponents else None
    pool = make_pool(config, "127.0.0.1:0")
    pool.start()
    actors = RemoteActors(config, pool, None, league=league)
    with contextlib.closing(pool), hosted(env, pool.address):
        assert actors.wait_env_spec(PATIENCE_MS) is not None
        actors.start(model, torch.device("cpu"), version=7)
        yield actors, league
        actors.stop()


def next_rollout(actors: RemoteActors) -> Rollout:
    rollout = actors.next_rollout(PATIENCE_MS)
    assert rollout is not None
    return rollout


def test_a_reward_in_the_turn_of_an_opponent_belongs_to_the_last_own_action() -> None:
    env = make_vector_env(TOLL, 2, env_kwargs={"num_moves": 6})
    with playing(env, model_of(env), batch_size=2) as (actors, _):
        rollout = next_rollout(actors)
    order = rollout.observation[0][0, :, 0].argsort()
    agent, moves = rollout.observation[0][:, order].unbind(-1)
    assert agent.tolist() == [[0, 1]] * (T + 1)
    assert moves.tolist() == [[0, 1], [2, 3], [4, 5], [6, 6]]
    # Moves 2, 4 and 6 are those of agent 1, and pay agent 0; the first reward of agent 1 is that of move 3.
    assert rollout.rewards[:, order].tolist() == [[0, 0], [2, 3], [4, 5], [6, 0]]
    assert rollout.valid.all() and rollout.terminated[T].all()

    discounts = (~rollout.terminated[1:, order]).float() * 0.5
    values = torch.zeros(T, 2)
    targets = from_importance_weights(
        log_rhos=torch.zeros(T, 2),
        discounts=discounts,
        rewards=rollout.rewards[1:, order],
        values=values,
        bootstrap_value=torch.zeros(2),
    )
    assert targets.vs[0].tolist() == [2 + 0.5 * (4 + 0.5 * 6), 3 + 0.5 * (5 + 0.5 * 0)]


def test_the_memory_of_an_agent_stays_while_it_waits() -> None:
    env = make_vector_env(TOLL, 2, env_kwargs={"num_moves": 40})
    model = model_of(env, use_lstm=True)
    with playing(env, model, batch_size=2) as (actors, _):
        rollouts = [next_rollout(actors) for _ in range(3)]
    for number in (0, 1):
        core_state = model.initial_state(1)
        for rollout in rollouts:
            (column,) = np.flatnonzero(rollout.observation[0][0, :, 0].numpy() == number)
            of_agent = rollout.core_state[0][:, column : column + 1]
            torch.testing.assert_close(of_agent, core_state[0])
            for t in range(T):
                row = rollout.model_inputs.map(lambda x, t=t, column=column: x[t : t + 1, column : column + 1])
                with torch.no_grad():
                    output, core_state = model(row, core_state)
                torch.testing.assert_close(rollout.policy_logits[t, column], output.policy_logits[0, 0])


@pytest.mark.parametrize("num_agents", [2, 3])
def test_only_the_learning_agent_of_each_environment_has_unrolls_and_episodes(num_agents: int) -> None:
    env = make_vector_env(TOLL, 2 * num_agents, env_kwargs={"num_agents": num_agents, "num_moves": 6 * num_agents})
    with playing(env, model_of(env), batch_size=2, opponents="uniform") as (actors, league):
        rollouts = [next_rollout(actors) for _ in range(4)]
        episodes = list(actors.take_episodes())
        stats = actors.stats()
    for rollout in rollouts:
        agents = rollout.observation[0][:, :, 0]
        assert (agents == agents[0]).all()
        assert len(set(agents[0].tolist())) == 2  # another agent in each of the two environments
    assert len({tuple(sorted(rollout.observation[0][0, :, 0].tolist())) for rollout in rollouts}) == 1
    assert league is not None and [version.number for version in league.table()] == [7]
    assert all(len(episode.opponents) == num_agents - 1 for episode in episodes)
    assert stats["opponent_steps"] > 0
    assert stats["steps_sampled"] == sum(
        stats[name] for name in stats if name.startswith(("steps_delivered", "steps_dropped_", "steps_in_flight"))
    )


def test_a_game_that_ends_before_the_first_turn_of_an_opponent_names_no_version() -> None:
    env = make_vector_env(FOLD, 4)
    with playing(env, model_of(env), batch_size=2, opponents="uniform", newest_share=0.0) as (actors, _):
        for _ in range(8):
            next_rollout(actors)
        episodes = list(actors.take_episodes())
    named = {(episode.length, tuple(episode.opponents)) for episode in episodes}
    assert named == {(1, (NEWEST,)), (3, (7,))}
