"""Synthetic rows have the same shapes and memory layout as those of a training."""

import pytest
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.algorithm.made_up import made_up_rollout
from kubebeast_learner.config import ModelConfig, RunConfig, TrainConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.tune import learner_probe
from kubebeast_learner.tune.learner_probe import Setup, made_up_batch, measure, setups
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, Leaf, discrete

T, B = 4, 3
CPU = torch.device("cpu")


def model_of(leaf: Leaf, model: str = "auto") -> Model:
    return make_model([leaf], [discrete(3)], ModelConfig(model=model))


def test_an_inference_batch_has_frames_where_the_pool_puts_them() -> None:
    model = model_of(FRAMES)
    batch = made_up_batch(EnvSpec.of("", [FRAMES], [discrete(3)]), model, 5, single_frames=False)

    assert list(model.interleaved) == [True]
    assert batch.observation[0].shape == (5, 84, 84, 4) and batch.observation[0].flags.c_contiguous
    assert [len(array) for array in (batch.rewards, batch.is_first, batch.slots, batch.last_actions[0])] == [5] * 4


def test_a_training_batch_has_the_wanted_size_and_the_pools_layout() -> None:
    rollout = made_up_rollout(model_of(FRAMES), [FRAMES], T, B)
    (frames,) = rollout.observation

    assert (rollout.unroll_length, rollout.batch_size) == (T, B)
    assert frames.shape == (T + 1, B, 4, 84, 84)
    assert frames.movedim(2, -1).is_contiguous()
    assert made_up_rollout(model_of(VECTOR), [VECTOR], T, B).observation[0].is_contiguous()


@pytest.mark.parametrize(
    ("run", "leaf", "expected"),
    [
        (RunConfig(device="cpu"), VECTOR, [("cpu", "fp32", threads) for threads in (1, 2, 4, 6)]),
        (RunConfig(device="cpu", learner_threads=3), VECTOR, [("cpu", "fp32", 3)]),
        (RunConfig(device="cuda:0"), VECTOR, [("cuda:0", "fp32", 1)]),
        (RunConfig(device="cpu", precision="bf16", learner_threads=1), FRAMES, [("cpu", "bf16", 1)]),
        (RunConfig(device="cpu", learner_threads=1), FRAMES, [("cpu", "fp32", 1), ("cpu", "bf16", 1)]),
    ],
)
def test_what_the_user_has_set_is_not_tried_otherwise(
    run: RunConfig, leaf: Leaf, expected: list[tuple[str, str, int]]
) -> None:
    found = setups(TrainConfig(run=run), model_of(leaf), cores=6)

    assert [(setup.device, setup.precision, setup.threads) for setup in found] == expected


def test_frames_come_once_where_a_training_gets_them_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def takes_single_frames(*devices: object) -> bool:
        asked.append(devices)
        return True

    monkeypatch.setattr(learner_probe, "takes_single_frames", takes_single_frames)
    spec = EnvSpec.of("", [FRAMES, VECTOR], [discrete(3)])
    cost = measure(TrainConfig(), spec, Setup("cpu", "fp32", 1), seconds=0.0)

    assert cost.update.wall_s > 0 and all(call.wall_s > 0 for call in cost.inference.values())
    assert asked == [(CPU, [CPU])] * (1 + len(cost.inference))


@pytest.mark.parametrize("use_lstm", [False, True])
def test_update_and_inference_are_measured(use_lstm: bool) -> None:
    config = TrainConfig(model=ModelConfig(hidden_sizes=(8,), use_lstm=use_lstm))
    cost = measure(config, EnvSpec.of("", [VECTOR], [discrete(3)]), Setup("cpu", "fp32", 1), seconds=0.0)

    assert cost.update.wall_s > 0 and all(call.wall_s > 0 for call in cost.inference.values())
    assert sorted(cost.inference) == [1, 8, 32, 128]
