"""The device is chosen by the user, and inference gives the same numbers on each."""

import numpy as np
import pytest
import torch

from kubebeast_learner.actors.inference import CoreStateTable, InferenceWorker
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.config import ConfigError
from kubebeast_learner.training.build import choose_device
from tests.unit.learner.actors.test_inference import A, FakePool
from tests.unit.learner.algorithm.learning_data import make_mlp

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.mark.parametrize("name", ["cpu", "meta"])
def test_the_device_is_the_one_that_is_named(name: str) -> None:
    assert choose_device(name) == torch.device(name)


def test_auto_takes_cuda_where_there_is_one() -> None:
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["cuda:99", "gpu"])
def test_a_device_that_is_not_here_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"device = '{name}'"):
        choose_device(name)


@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
def test_inference_gives_the_models_numbers(device: str, use_lstm: bool) -> None:
    pool, model = FakePool(), make_mlp(A, use_lstm=use_lstm)
    weights = WeightPublisher(model, device=device, precision="fp32", version=3)
    core_states = CoreStateTable(model, max_envs=4, device=device) if use_lstm else None
    worker = InferenceWorker(pool, weights, core_states=core_states, device=device)
    worker.start()
    slots = [3, 1]
    core_state = model.initial_state(len(slots))
    for step in range(3):
        batch, reply = pool.ask(slots, is_first=[step == 0] * 2, unroll_start=[True] * 2)
        if use_lstm:
            assert reply.core_state is not None
            np.testing.assert_allclose(reply.core_state, model.pack_core_state(core_state), rtol=1e-4, atol=1e-5)
        else:
            assert reply.core_state is None
        with torch.no_grad():
            output, core_state = model(batch.model_inputs(), core_state)
        np.testing.assert_allclose(reply.policy_logits, output.policy_logits[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(reply.baseline, output.baseline[0], rtol=1e-4, atol=1e-5)
        assert reply.policy_version == 3
    worker.stop()
