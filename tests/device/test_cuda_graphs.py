"""On a GPU, graphs give the numbers of eager code, also if several threads record and run at once."""

import threading
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.graph_runner import GraphRunner
from kubebeast_learner.actors.runner import EagerRunner
from kubebeast_learner.algorithm.execution.update_graphs import NUM_EAGER
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.config import LossConfig, ModelConfig
from kubebeast_learner.machine.cuda_graph import CaptureError, GraphRecorder
from kubebeast_learner.models import make_model
from tests.device import test_graph_runner as inference
from tests.device import test_update_graphs as updates
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, discrete, random_leaf, random_rollout

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
CUDA = torch.device("cuda:0")
NEAR: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-4}


def pair(model: str, optimizer: str) -> tuple[Learner, Learner]:
    torch.manual_seed(0)
    action = updates.BOUNDED if model == "tanh" else discrete(3)
    source = make_model([VECTOR], [action], updates.MODELS[model])
    eager, graphed = (
        Learner(
            deepcopy(source),
            updates.OPTIMIZERS[optimizer],
            LossConfig(),
            schedule_steps=10_000,
            device=CUDA,
            precision="fp32",
            compile="off",
            recorder=recorder,
        )
        for recorder in (None, GraphRecorder(CUDA))
    )
    return eager, graphed


@pytest.mark.parametrize("optimizer", updates.OPTIMIZERS)
@pytest.mark.parametrize("model", updates.MODELS)
def test_updates_equal_eager_ones(model: str, optimizer: str, caplog: pytest.LogCaptureFixture) -> None:
    eager, graphed = pair(model, optimizer)
    for index, rollout in enumerate(updates.batches(eager, NUM_EAGER + 12)):
        batch = rollout.to(CUDA)
        if index % 5 == 4:
            batch = replace(batch, rewards=torch.full_like(batch.rewards, torch.nan))
        expected, found = updates.update_both(eager, graphed, batch, step=20 * index)
        assert found.skipped == expected.skipped == (index % 5 == 4)
        if not found.skipped:
            assert found.total_loss == pytest.approx(expected.total_loss, rel=1e-2, abs=1e-2)
        assert (found.version, found.policy_lag) == (expected.version, expected.policy_lag)
    assert "CUDA graphs" not in caplog.text
    for mine, other in zip(updates.tensors_of(graphed.model), updates.tensors_of(eager.model), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("default")  # a compiler's own
@pytest.mark.parametrize("compile", ["off", "on"])
def test_a_network_of_frames_is_recorded_in_bf16(compile: Any, caplog: pytest.LogCaptureFixture) -> None:
    model = make_model([FRAMES], [discrete(3)], ModelConfig(model="shallow"))
    learner = Learner(
        model,
        updates.OPTIMIZERS["rmsprop"],
        LossConfig(),
        schedule_steps=10_000,
        device=CUDA,
        precision="bf16",
        compile=compile,
        recorder=GraphRecorder(CUDA),
    )
    for seed in range(NUM_EAGER + 4):
        rollout = replace(random_rollout(seed=seed), observation=(random_leaf(FRAMES, 6, 4),))
        assert not learner.update(rollout.to(CUDA), step=0).skipped
    assert "CUDA graphs" not in caplog.text and "torch.compile failed" not in caplog.text


@pytest.mark.parametrize("name", inference.MODELS)
def test_answers_are_those_of_eager_inference_beside_updates(name: str) -> None:
    leaf, action, config = inference.MODELS[name]
    torch.manual_seed(0)
    model = make_model([leaf], [action], config).eval().requires_grad_(False).to(CUDA)
    tables: list[dict[str, Any]] = [
        {
            "core_states": CoreStateTable(model, inference.MAX_ENVS, CUDA) if model.core_state_size else None,
            "frames": FrameTable([leaf], CUDA) if leaf.frame_stack > 1 else None,
        }
        for _ in range(2)
    ]
    eager = EagerRunner(CUDA, torch.Generator(CUDA).manual_seed(0), **tables[0])
    graphs = GraphRunner(CUDA, torch.Generator(CUDA).manual_seed(0), **tables[1])
    games, stop = inference.Games(model, leaf), threading.Event()
    beside = threading.Thread(target=update_until, args=(stop,))
    beside.start()
    try:
        with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream(priority=-1)):  # type: ignore[no-untyped-call]
            for step in range(60):
                if step % 7 == 0:
                    for weight in model.parameters():
                        weight.add_(0.01 * torch.randn(weight.shape).to(CUDA))
                batch: Any = games.batch(min(inference.MAX_ENVS, 3 + step))
                found, expected = (runner.run(batch, model, version=step // 7) for runner in (graphs, eager))
                num_logits = model.distribution.num_logits
                torch.testing.assert_close(found.record[:, :num_logits], expected.record[:, :num_logits], **NEAR)
                torch.testing.assert_close(found.baseline, expected.baseline, **NEAR)
                if expected.core_state is not None:
                    torch.testing.assert_close(found.core_state, expected.core_state, **NEAR)
    finally:
        stop.set()
        beside.join()


def update_until(stop: threading.Event) -> None:
    """Records and runs updates of new learners until `stop`."""
    while not stop.is_set():
        _, learner = pair("mlp", "rmsprop")
        for rollout in updates.batches(learner, NUM_EAGER + 5):
            learner.update(rollout.to(CUDA), step=0)


def test_draws_of_a_graph_go_on_with_every_start() -> None:
    generator, drawn = torch.Generator(CUDA).manual_seed(0), torch.zeros(8, device=CUDA)

    def work() -> None:
        drawn.normal_(generator=generator)

    work()
    start, seen = GraphRecorder(CUDA, [generator]).record(work), []
    for _ in range(3):
        start()
        seen.append(drawn.clone())
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])


def test_work_that_waits_for_the_device_is_refused_and_the_device_goes_on() -> None:
    number = torch.ones((), device=CUDA)
    with pytest.raises(CaptureError):
        GraphRecorder(CUDA).record(lambda: print(number.item()))
    assert (number + 1).item() == 2.0
