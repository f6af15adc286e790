"""The simulation has the rules of CUDA: places, order, waits, copies, graphs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.device.simulation.findings import found

CUDA, OTHER = torch.device("cuda:0"), torch.device("cuda:1")


def faults() -> list[str]:
    """Returns the faults, which then do not fail the test."""
    faults = list(found.faults)
    found.faults.clear()
    return faults


def new_stream() -> Any:
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


def pinned(*values: float) -> Tensor:
    return torch.tensor(values).pin_memory()


@pytest.mark.parametrize(
    "operation",
    [
        lambda: torch.ones(2, device=CUDA) + torch.ones(2),
        lambda: torch.ones(2, device=CUDA) + torch.ones(2, device=OTHER),
        lambda: torch.ones(2, 2, device=CUDA) @ torch.ones(2, 2),
        lambda: torch.cat([torch.ones(2, device=CUDA), torch.ones(2)]),
        lambda: torch.ones(2, device=CUDA).index_select(0, torch.tensor([0])),
        lambda: torch.ones(2, device=CUDA)[torch.tensor([0], device=OTHER)],
        lambda: torch.rand(2, device=CUDA, generator=torch.Generator()),
        lambda: torch.rand(2, device=CUDA, generator=torch.Generator(OTHER)),
        lambda: torch.ones(2, device="cuda:2"),
        lambda: torch.ones(2, device=CUDA).numpy(),
    ],
)
def test_an_operation_needs_one_device(operation: Callable[[], Tensor]) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"same device|Expected a|invalid device|numpy"):
        operation()


def test_numbers_of_the_cpu_may_be_used_one_by_one() -> None:
    assert (torch.ones(2, device=CUDA) * torch.tensor(3.0)).tolist() == [3.0, 3.0]
    assert torch.arange(3, device=CUDA)[torch.tensor([2])].tolist() == [2]


def test_a_backward_pass_stays_on_its_device() -> None:
    weights = torch.ones(3, device=OTHER, requires_grad=True)
    (weights * torch.arange(3.0, device=OTHER)).sum().backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    assert weights.grad.device == OTHER and weights.grad.tolist() == [0.0, 1.0, 2.0]


def test_streams_need_an_order() -> None:
    side, data = new_stream(), torch.zeros(3, device=CUDA)
    with torch.cuda.stream(side):
        data.add_(1)
    assert "race" in faults()[0]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        data.add_(1)
        event = side.record_event()
    torch.cuda.current_stream().wait_event(event)
    assert (data + 1).tolist() == [3.0] * 3
    assert faults() == []


def test_the_host_is_an_order_once_it_has_waited() -> None:
    side, data = new_stream(), torch.zeros(3, device=CUDA)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        data.add_(1)
    side.synchronize()
    data.add_(1)
    assert faults() == []


def test_rows_of_a_table_are_ordered_one_by_one() -> None:
    side, table = new_stream(), torch.zeros(4, 2, device=CUDA)
    places = [torch.tensor(rows, device=CUDA) for rows in ([0, 2], [1, 3], [2])]
    torch.cuda.synchronize()
    table[places[0]] = torch.ones(2, 2, device=CUDA)
    with torch.cuda.stream(side):
        table[places[1]] = torch.ones(2, 2, device=CUDA)
        assert faults() == []
        table[places[2]] = torch.ones(1, 2, device=CUDA)
    assert "race" in faults()[0]
    side.synchronize()


def test_memory_is_not_freed_while_another_stream_uses_it() -> None:
    side = new_stream()
    for is_recorded in (False, True):
        data = torch.zeros(3, device=CUDA)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            data.sum()
        if is_recorded:
            data.record_stream(side)
        del data
        assert [each.partition(":")[0] for each in faults()] == ["freed in use"] * (not is_recorded)


def test_the_host_gets_garbage_until_it_has_waited() -> None:
    copy = torch.arange(3.0, device=CUDA).to("cpu", non_blocking=True)
    assert copy.tolist() != [0.0, 1.0, 2.0]
    torch.cuda.synchronize()
    assert copy.tolist() == [0.0, 1.0, 2.0]


def test_pinned_memory_stays_as_it_is_until_the_host_has_waited() -> None:
    source = pinned(1.0, 2.0)
    source.to(CUDA, non_blocking=True)
    source.fill_(3.0)
    torch.cuda.synchronize()
    assert "changed in use" in faults()[0]


def test_waits_and_copies_are_counted() -> None:
    found.reset()
    data = pinned(1.0, 2.0).to(CUDA, non_blocking=True)
    assert not found.waits and found.copied_bytes == {"to a device": 8}
    torch.ones(2).to(CUDA, non_blocking=True)
    data.sum().item()
    data[data > 1]
    assert sorted(each.partition(" at ")[0] for each in found.waits) == [
        "a copy to a device",
        "aten::_local_scalar_dense",
        "aten::index",
    ]


def capture(work: Callable[[], object], *generators: torch.Generator) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=new_stream()):
        work()
    return graph


def test_a_graph_reads_its_addresses_at_every_start() -> None:
    source, total = torch.ones(2, device=CUDA), torch.zeros(2, device=CUDA)
    graph = capture(lambda: total.add_(source * 2))
    assert total.tolist() == [0.0, 0.0]
    graph.replay()
    source.copy_(pinned(10.0, 20.0), non_blocking=True)
    graph.replay()
    assert total.tolist() == [22.0, 42.0]


def test_a_graph_copies_pinned_memory_at_every_start() -> None:
    into, out = pinned(1.0, 2.0), pinned(0.0, 0.0)
    data = torch.zeros(2, device=CUDA)

    def work() -> None:
        data.copy_(into, non_blocking=True)
        out.copy_(data + 1, non_blocking=True)

    graph = capture(work)
    graph.replay()
    torch.cuda.synchronize()
    into.fill_(5.0)
    graph.replay()
    assert out.tolist() != [6.0, 6.0]
    torch.cuda.synchronize()
    assert out.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    "work",
    [
        lambda data: data.sum().item(),
        lambda data: data[data > 0],
        lambda data: data.cpu(),
        lambda data: data + torch.ones(2).to(CUDA),
        lambda data: torch.ones(2).pin_memory(),
        lambda data: torch.cuda.synchronize(),
        lambda data: data.normal_(generator=torch.Generator(CUDA)),
    ],
)
def test_a_capture_refuses_waits_pinned_memory_and_strange_generators(work: Callable[[Tensor], object]) -> None:
    data = torch.ones(2, device=CUDA)
    with pytest.raises(RuntimeError, match=r"capturing|register_generator_state"):
        capture(lambda: work(data))
    assert (data + 1).tolist() == [2.0, 2.0]


def test_a_graph_does_not_read_memory_that_was_freed() -> None:
    sources, total = [torch.ones(2, device=CUDA)], torch.zeros(2, device=CUDA)
    graph = capture(lambda: total.add_(sources[0]))
    graph.replay()
    assert faults() == []
    sources.clear()
    graph.replay()
    assert "freed in use" in faults()[0]


def test_graphs_on_two_streams_need_an_order() -> None:
    total = torch.zeros(2, device=CUDA)
    graph = capture(lambda: total.add_(1))
    graph.replay()
    with torch.cuda.stream(new_stream()):
        graph.replay()
    assert "race" in faults()[0]
    torch.cuda.synchronize()
