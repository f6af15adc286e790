"""Faults that are planted in the learner are found, each by its effect."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch

from kubebeast_learner.actors import core_states, frame_table, graph_runner, weights
from kubebeast_learner.actors.graph_runner import bucket_of
from kubebeast_learner.algorithm import rollout
from kubebeast_learner.algorithm.execution import update_graphs
from kubebeast_learner.algorithm.gradient_steps import GradientSteps
from kubebeast_learner.machine import packed_tensors
from kubebeast_learner.machine.cuda_graph import GraphRecorder
from kubebeast_learner.training import uploads
from tests.device.simulated.learners import TOO_MANY_BYTES
from tests.device.simulated.learners import test_answers_equal_those_on_the_cpu as answers_as_on_the_cpu
from tests.device.simulated.learners import test_updates_equal_those_on_the_cpu as updates_as_on_the_cpu
from tests.device.simulated.threads import (
    play_in_two_threads,
    play_while_weights_change,
    remember_in_two_threads,
    train_on_batches_that_are_copied_ahead,
)
from tests.device.simulation.findings import found
from tests.device.simulation.tensors import SimulatedTensor
from tests.device.test_cuda_graphs import test_updates_equal_eager_ones as update_by_graphs


class Planted(NamedTuple):
    owner: Any
    name: str
    fault: Any
    run: Callable[[pytest.LogCaptureFixture], None]
    sign: str


def torch_with(**changes: Any) -> SimpleNamespace:
    """Returns PyTorch with other functions."""
    return SimpleNamespace(**{**vars(torch), **changes})


def do_nothing(*args: Any, **kwargs: Any) -> None:
    pass


newest_sizes = property(lambda runner: [len(table) for table in runner._tables], do_nothing)
"""Sizes of tables that never differ from the newest ones."""


def number_on_device(steps: GradientSteps, batch: Any) -> Any:
    """Makes a step by a graph, and reads a number for it."""
    assert batch.valid.sum().item() > 0
    return _step_on_device(steps, batch)


def start_with_the_old_batch(graph: Any, batch: Any) -> Any:
    graph._start()
    return lambda: rollout.to_host(graph._numbers)[0].tolist()


def give_away(ahead: uploads.Uploads, batch: Any) -> Any:
    """Returns the batch that was copied ahead without a wait for its copies."""
    made, ahead._ahead = ahead._ahead, None
    return ahead._upload(batch) if made is None else made.on_device


_step_on_device = GradientSteps._step_on_device
_zeros, _arange = torch.zeros, torch.arange


def play(**options: Any) -> Callable[[pytest.LogCaptureFixture], None]:
    return lambda log: play_while_weights_change(**options)


def share(**options: Any) -> Callable[[pytest.LogCaptureFixture], None]:
    return lambda log: play_in_two_threads(**options)


def remember(**options: Any) -> Callable[[pytest.LogCaptureFixture], None]:
    return lambda log: remember_in_two_threads(**options)


def train(log: pytest.LogCaptureFixture) -> None:
    train_on_batches_that_are_copied_ahead()


def update(log: pytest.LogCaptureFixture) -> None:
    update_by_graphs("mlp", "rmsprop", log)


def check_updates(log: pytest.LogCaptureFixture) -> None:
    updates_as_on_the_cpu("mlp")


def check_answers(log: pytest.LogCaptureFixture) -> None:
    answers_as_on_the_cpu("shallow")


FAULTS = {
    "new weights are not waited for": Planted(
        weights._Replica, "wait_until_loaded", do_nothing, play(use_graphs=False), "race: .* is read"
    ),
    "answers are read before they are there": Planted(
        rollout, "wait_for_stream", do_nothing, play(use_graphs=False), "not close"
    ),
    "rows are put in before the last ones are copied": Planted(
        graph_runner, "wait_for_stream", do_nothing, play(use_graphs=True), "changed in use|not close"
    ),
    "graphs keep the first weights": Planted(
        graph_runner, "copy_weights", do_nothing, play(use_graphs=True), "not close"
    ),
    "a graph does not know its generator": Planted(
        graph_runner,
        "GraphRecorder",
        lambda device, generators: GraphRecorder(device),
        play(use_graphs=True),
        "register_generator_state",
    ),
    "numbers of the table of frames are on the CPU": Planted(
        frame_table,
        "torch",
        torch_with(arange=lambda *args, device=None: _arange(*args)),
        share(use_graphs=False),
        "same device",
    ),
    "the table of frames moves while others use it": Planted(
        frame_table.FrameTable, "_wait_for_all_streams", do_nothing, share(use_graphs=False), "freed in use"
    ),
    "the table of core states moves while others use it": Planted(
        core_states.CoreStateTable, "_wait_for_all_streams", do_nothing, remember(use_graphs=False), "freed in use"
    ),
    "graphs keep the old table of core states": Planted(
        graph_runner.GraphRunner, "_sizes", newest_sizes, remember(use_graphs=True), "freed in use"
    ),
    "graphs keep the old table of frames": Planted(
        graph_runner.GraphRunner, "_sizes", newest_sizes, share(use_graphs=True), "freed in use"
    ),
    "a graph is started with the last batch": Planted(
        update_graphs._Graph, "start", start_with_the_old_batch, update, "assert|approx|close"
    ),
    "an update reads a number": Planted(
        GradientSteps, "_step_on_device", number_on_device, update, "cannot be recorded"
    ),
    "a batch is used while it is copied": Planted(uploads.Uploads, "on_device", give_away, train, "race"),
    "a batch is freed while it is used": Planted(SimulatedTensor, "record_stream", do_nothing, train, "freed in use"),
    "a batch is packed with holes": Planted(packed_tensors, "_ALIGNMENT", 65_536, check_updates, TOO_MANY_BYTES),
    "more rows are copied than a batch has": Planted(
        graph_runner, "bucket_of", lambda num_rows: 4 * bucket_of(num_rows), check_answers, TOO_MANY_BYTES
    ),
    "batches are packed in pageable memory": Planted(
        packed_tensors,
        "torch",
        torch_with(empty=lambda *args, pin_memory=False, **options: torch.empty(*args, **options)),
        train,
        "waits for the device",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    planted = FAULTS[name]
    monkeypatch.setattr(planted.owner, planted.name, planted.fault, raising=False)
    signs = []
    try:
        planted.run(caplog)
    except Exception as error:
        signs.append(f"{type(error).__name__}: {error}")
    monkeypatch.undo()
    torch.cuda.synchronize()
    signs += found.faults
    found.reset()
    assert re.search(planted.sign, "\n".join(signs)), signs
