"""Upper bounds of the host's calls on a device for an inference batch and for an update."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from kubebeast_learner.actors import graph_runner
from kubebeast_learner.algorithm import rollout as rollouts
from kubebeast_learner.algorithm.execution.update_graphs import NUM_EAGER
from tests.device import test_graph_runner as inference
from tests.device import test_update_graphs as updates
from tests.device.recorded_operations import OperationRecorder, address_of, tensors_in


class HostCalls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations that are started one by one: all that write memory, but those of a graph."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        given = {address_of(each) for each in tensors_in((args, kwargs))}
        if function._schema.is_mutable or not {address_of(each) for each in tensors_in(result)} <= given:
            self.names.append(function._schema.name)
        return result


def hide_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the start of a graph one call: its operations are not those of the host."""
    record = OperationRecorder.record

    def record_hidden(self: OperationRecorder, work: Callable[[], None]) -> Callable[[], None]:
        start = record(self, work)

        def start_hidden() -> None:
            with _disable_current_modes():
                start()

        return start_hidden

    monkeypatch.setattr(OperationRecorder, "record", record_hidden)


def count_waits(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[torch.device]:
    waits: list[torch.device] = []
    monkeypatch.setattr(module, "wait_for_stream", waits.append)
    return waits


@pytest.mark.parametrize("name", ["mlp", "frames", "numbers"])
@torch.inference_mode()
def test_an_inference_batch_is_one_start_and_one_wait(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies in and out are part of the graph."""
    hide_graphs(monkeypatch)
    waits = count_waits(monkeypatch, graph_runner)
    model, _, graphs, recorder, games = inference.make(name)
    batch: Any = games.batch(8)
    for _ in range(2):
        graphs.run(batch, model, version=1)
    batch.is_first[:], batch.first_stacks = False, [each[:0] for each in batch.first_stacks]
    starts = recorder.num_starts
    waits.clear()

    with HostCalls() as calls:
        graphs.run(batch, model, version=1)

    assert calls.names == [] and recorder.num_starts == starts + 1 and len(waits) == 1


@torch.inference_mode()
def test_new_weights_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_graphs(monkeypatch)
    model, _, graphs, _, games = inference.make("mlp")
    batch: Any = games.batch(8)
    for _ in range(2):
        graphs.run(batch, model, version=1)

    with HostCalls() as calls:
        graphs.run(batch, model, version=2)

    assert calls.names == ["aten::_foreach_copy_"]


@pytest.mark.usefixtures("lstms_do_as_in_a_capture")
@pytest.mark.parametrize("optimizer", updates.OPTIMIZERS)
@pytest.mark.parametrize("model", updates.MODELS)
def test_an_update_is_one_start_one_wait_and_few_calls(
    model: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_graphs(monkeypatch)
    waits = count_waits(monkeypatch, rollouts)
    _, graphed, recorder = updates.make(model, optimizer)
    batches = updates.batches(graphed, NUM_EAGER + 4)
    for index in range(NUM_EAGER + 3):
        graphed.update(next(batches), step=20 * index)
    starts, last = recorder.num_starts, next(batches)
    waits.clear()

    with HostCalls() as calls:
        graphed.update(last, step=1000)

    assert recorder.num_starts == starts + 1 and len(waits) == 1
    assert len(calls.names) <= 12, calls.names
