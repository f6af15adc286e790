"""The memory of a training is computed before it is allocated, in whole numbers that do not overflow."""

from dataclasses import replace
from typing import Literal, get_args

import pytest
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.config import LearnerConfig, ModelConfig, PoolConfig, ReplayConfig, RolloutConfig, TrainingConfig
from kubebeast_learner.models import ModelSpecError, make_model
from kubebeast_learner.models.sizes import check_sizes, model_bytes
from kubebeast_learner.training import sizes
from kubebeast_learner.training.sizes import check_memory

GIB = 1 << 30
Initialisation = Literal["pytorch", "orthogonal"]
CHOICE = Leaf("", "int64", (), 1, 3)
ATARI = EnvSpec("Pong", (Leaf("", "uint8", (84, 84), 4, 0),), (Leaf("", "int64", (), 1, 6),))
VECTOR = EnvSpec("Vector", (Leaf("", "float32", (4,), 1, 0),), (CHOICE,))


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 GiB."""
    monkeypatch.setattr(sizes, "memory_bytes", lambda: 16 * GIB)


@pytest.mark.parametrize("model", ["auto", "deep", "mlp"])
@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize("initialisation", get_args(Initialisation))
def test_the_size_of_a_model_is_known_without_making_it(
    model: str, use_lstm: bool, initialisation: Initialisation
) -> None:
    config = ModelConfig(model=model, use_lstm=use_lstm, normalise_values=True)
    state = torch.get_rng_state()
    counted, core_state = model_bytes(lambda: make_model(ATARI.observation, ATARI.action, config))
    assert torch.equal(torch.get_rng_state(), state), "the weights of a run stay those of its seed"
    made = make_model(ATARI.observation, ATARI.action, replace(config, initialisation=initialisation))
    tensors = [*made.parameters(), *made.buffers()]
    assert counted == sum(tensor.nbytes for tensor in tensors)
    assert core_state == 4 * made.core_state_size


def test_an_atari_training_fits() -> None:
    config = TrainingConfig(rollout=RolloutConfig(unroll_length=80, batch_size=32))
    check_memory(config, ATARI, is_named=False)


@pytest.mark.parametrize(
    "leaf",
    [
        Leaf("a", "int64", (), 1, 2**62),
        Leaf("a", "int64", (2**20, 2**20), 1, 2**62),
        Leaf("a", "float32", (2**28 + 1,), 1, 0),
        Leaf("a", "uint8", (2**27,), 4, 0),
    ],
)
def test_a_leaf_that_becomes_too_many_numbers_is_named(leaf: Leaf) -> None:
    with pytest.raises(ModelSpecError, match=r'observation leaf "a".*numbers, at most 268,435,456'):
        check_sizes([leaf], [CHOICE])
    with pytest.raises(ModelSpecError, match=r'action leaf "a"'):
        check_sizes(VECTOR.observation, [leaf])


def test_leaves_without_elements_are_no_observation_but_may_stand_beside_one() -> None:
    empty = Leaf("empty", "float32", (0, 3), 1, 0)
    check_sizes([empty, *VECTOR.observation], [CHOICE])
    with pytest.raises(ModelSpecError, match=r'the observation has no element: "empty"'):
        check_sizes([empty], [CHOICE])


def test_an_environment_that_nobody_named_may_take_less_than_one_that_is() -> None:
    config = TrainingConfig(model=ModelConfig(model="mlp", hidden_sizes=(256,)))
    spec = replace(VECTOR, observation=(Leaf("", "float32", (2**20,), 1, 0),))  # 1 GiB of weights
    check_memory(config, spec, is_named=True)
    with pytest.raises(ModelSpecError, match=r"Vector takes a model of 1 GiB.*at most 4 GiB.*--env does not name"):
        check_memory(config, spec, is_named=False)


def test_nobody_may_take_more_than_there_is() -> None:
    config = TrainingConfig(model=ModelConfig(model="mlp", hidden_sizes=(2048,)))
    spec = replace(VECTOR, observation=(Leaf("", "float32", (2**20,), 1, 0),))
    with pytest.raises(ModelSpecError, match=r"a model of 8 GiB.*this machine has 16 GiB"):
        check_memory(config, spec, is_named=True)


def test_core_states_and_replay_count() -> None:
    config = LearnerConfig(
        rollout=RolloutConfig(unroll_length=79, batch_size=1),
        replay=ReplayConfig(replay_share=0.0, replay_capacity=1000),
        pool=PoolConfig(max_envs=1 << 26),
    )
    check_memory(config, VECTOR, is_named=True)
    with pytest.raises(ModelSpecError, match="this machine has 16 GiB"):
        check_memory(replace(config, model=ModelConfig(model="mlp", use_lstm=True)), VECTOR, is_named=True)
    rollout = RolloutConfig(unroll_length=79, batch_size=2)
    replayed = replace(config, replay=ReplayConfig(replay_share=0.5, replay_capacity=10**7), rollout=rollout)
    with pytest.raises(ModelSpecError, match="this machine has 16 GiB"):
        check_memory(replayed, VECTOR, is_named=True)


def test_a_model_of_the_users_own_counts_as_nothing() -> None:
    config = TrainingConfig(model=ModelConfig(model="tests.unit.learner.models.user_models:Nowhere"))
    check_memory(config, VECTOR, is_named=False)
