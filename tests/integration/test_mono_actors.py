"""Batches of actor processes leave out the unrolls of absent agents."""

import json
from pathlib import Path

import torch

from harness.processes.training_process import TIMEOUT_S
from kubebeast_learner.actors.mono.actors import MonoActors
from kubebeast_learner.config import ActorProcessesConfig, ModelConfig, MonoConfig, ReplayConfig, RolloutConfig
from kubebeast_learner.models import make_model
from tests.integration.hunt import ABSENT, HUNT, NUM_AGENTS, PLAYS

T, B = 4, 5
"""B is no multiple of the columns of a block."""
GAME = [PLAYS * NUM_AGENTS, "t" + PLAYS * (NUM_AGENTS - 1), *[ABSENT + PLAYS * (NUM_AGENTS - 1)] * 30]
NUM_BATCHES = 20


def test_unrolls_of_who_stays_away_are_left_out(tmp_path: Path) -> None:
    config = MonoConfig(
        actors=ActorProcessesConfig(
            env=HUNT,
            env_kwargs=json.dumps({"games": [GAME] * NUM_BATCHES}),
            num_actors=2 * NUM_AGENTS,
            num_actor_processes=1,
        ),
        rollout=RolloutConfig(unroll_length=T, batch_size=B),
        replay=ReplayConfig(),
    )
    actors = MonoActors(config, tmp_path)
    try:
        spec = actors.wait_env_spec(1000 * TIMEOUT_S)
        assert spec is not None
        actors.start(make_model(spec.observation, spec.action, ModelConfig()), torch.device("cpu"), version=0)
        num_unrolls = dict.fromkeys(range(NUM_AGENTS), 0)
        for _ in range(NUM_BATCHES):
            rollout = actors.next_rollout(1000 * TIMEOUT_S)
            assert rollout is not None and rollout.valid.any(dim=0).all()
            agents = rollout.observation[0][:-1, :, 0]
            for column in range(B):
                (agent,) = set(agents[rollout.valid[:, column], column].tolist())
                num_unrolls[int(agent)] += 1
    finally:
        actors.stop()
    assert 0 < num_unrolls[0] < min(num_unrolls[1], num_unrolls[2])
