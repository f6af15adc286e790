"""Work of several streams is in order: batches copied ahead, new weights, and tables of frames that threads share."""

from typing import Any

import pytest
import torch

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.graph_runner import GraphRunner
from kubebeast_learner.actors.runner import EagerRunner
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import Model, make_model
from kubebeast_learner.profiling.phases import PhaseTimes
from kubebeast_learner.training.uploads import Uploads
from tests.device.simulation.findings import found
from tests.device.test_graph_runner import SCREEN, Games
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete, make_mlp, random_rollout
from tests.unit.learner.training.scripted_actors import BATCHES, ScriptedActors

CUDA, CPU = torch.device("cuda:0"), torch.device("cpu")
MAX_ENVS, NUM_SLOTS = 16_384, (40, 90)
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}


class Thread:
    """The runner and the stream of a thread of inference."""

    def __init__(
        self, frames: FrameTable | None = None, states: CoreStateTable | None = None, *, use_graphs: bool = False
    ) -> None:
        generator = torch.Generator(CUDA).manual_seed(0)
        kind = GraphRunner if use_graphs else EagerRunner
        self._runner = kind(CUDA, generator, states, frames)
        self._stream = torch.cuda.Stream(CUDA, priority=-1)  # type: ignore[no-untyped-call]

    def answer(self, batch: Any, weights: WeightPublisher) -> torch.Tensor:
        with torch.inference_mode(), torch.cuda.stream(self._stream), weights.acquire() as (model, version):
            return self._runner.run(batch, model, version).baseline.clone()


def expected(
    batch: Any, model: Model, frames: FrameTable | None = None, states: CoreStateTable | None = None
) -> torch.Tensor:
    with torch.inference_mode():
        return EagerRunner(CPU, torch.Generator(), states, frames).run(batch, model, 0).baseline


def learner(model: Model) -> Learner:
    return Learner(
        model, OptimizerConfig(), LossConfig(), schedule_steps=100, device=CUDA, precision="fp32", compile="off"
    )


def train_on_batches_that_are_copied_ahead() -> None:
    config = ModelConfig(model="mlp", hidden_sizes=(8,), normalise_observations=True, normalise_values=True)
    trained = learner(make_model([VECTOR], [discrete(3)], config))  # its statistics read a batch after the last wait
    uploads = Uploads(ScriptedActors(), CUDA, PhaseTimes())
    for step in range(BATCHES):
        batch = uploads.next(0)
        assert batch is not None
        on_device = uploads.on_device(batch)
        found.reset()
        uploads.fetch()
        assert not found.waits, "a copy ahead waits for the device"
        trained.update(on_device, step)
        del on_device


def play_while_weights_change(*, use_graphs: bool) -> None:
    trained, thread = learner(make_mlp()), Thread(use_graphs=use_graphs)
    weights, games = WeightPublisher(trained.model, device=CUDA, precision="fp32"), Games(trained.model, VECTOR)
    for step in range(4):
        batch: Any = games.batch(8)
        answer = thread.answer(batch, weights)
        here = make_mlp()
        here.load_state_dict({name: value.cpu() for name, value in trained.model.state_dict().items()})
        torch.testing.assert_close(answer, expected(batch, here.eval()), **NEAR)
        trained.update(random_rollout(seed=step).to(CUDA), step)
        weights.publish(step + 1)


def play_in_two_threads(*, use_graphs: bool) -> None:
    torch.manual_seed(0)
    here = make_model([SCREEN], [discrete(3)], ModelConfig(model="shallow")).eval()
    weights = WeightPublisher(here, device=CUDA, precision="fp32")
    there, reference = FrameTable([SCREEN], CUDA), FrameTable([SCREEN], CPU)
    threads = [Thread(there, use_graphs=use_graphs) for _ in range(2)]
    games = Games(here, SCREEN)
    for step in range(8):
        batch: Any = games.batch(2 + 4 * step)  # the table grows
        answer = threads[step % 2].answer(batch, weights)
        torch.testing.assert_close(answer, expected(batch, here, reference), **NEAR)


def remember_in_two_threads(*, use_graphs: bool) -> None:
    torch.manual_seed(0)
    here = make_mlp(use_lstm=True).eval()
    weights = WeightPublisher(here, device=CUDA, precision="fp32")
    there, reference = CoreStateTable(here, MAX_ENVS, CUDA), CoreStateTable(here, MAX_ENVS)
    assert len(there) < NUM_SLOTS[1]
    threads = [Thread(None, there, use_graphs=use_graphs) for _ in range(2)]
    games = Games(here, VECTOR)
    for step in range(12):
        batch: Any = games.batch(NUM_SLOTS[step >= 4])  # the table grows
        answer = threads[step % 2].answer(batch, weights)
        torch.testing.assert_close(answer, expected(batch, here, states=reference), **NEAR)
    assert NUM_SLOTS[1] <= len(there) <= 2 * NUM_SLOTS[1]


def test_batches_that_are_copied_ahead_are_in_order() -> None:
    train_on_batches_that_are_copied_ahead()


@pytest.mark.parametrize("use_graphs", [False, True])
def test_a_thread_plays_with_the_newest_weights(use_graphs: bool) -> None:
    play_while_weights_change(use_graphs=use_graphs)


@pytest.mark.parametrize("use_graphs", [False, True])
def test_threads_share_a_table_that_grows(use_graphs: bool) -> None:
    play_in_two_threads(use_graphs=use_graphs)


@pytest.mark.parametrize("use_graphs", [False, True])
def test_threads_share_core_states_that_grow(use_graphs: bool) -> None:
    remember_in_two_threads(use_graphs=use_graphs)


def test_core_states_of_six_games_take_less_than_two_megabytes() -> None:
    model = make_model([SCREEN], [discrete(6)], ModelConfig(model="shallow", use_lstm=True))
    table = CoreStateTable(model, MAX_ENVS, CUDA)
    assert (1 + len(table)) * model.core_state_size * 4 < 2e6
