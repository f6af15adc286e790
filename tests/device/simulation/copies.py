"""Copies between memories: within a device, between devices, and from and to the host, which may wait or not."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tests.device.simulation.findings import found
from tests.device.simulation.kernels import Kernel, kernel_of, start
from tests.device.simulation.memory import Access, allocate, note
from tests.device.simulation.placement import placed
from tests.device.simulation.streams import Stream, current_stream, refuse_in_capture, wait_on_host
from tests.device.simulation.tensors import SimulatedTensor, data_of

aten = torch.ops.aten


def to_copy(source: Tensor, **options: Any) -> Tensor:
    """Runs aten::_to_copy."""
    wanted, non_blocking = options.pop("device", None), options.pop("non_blocking", False)
    options.pop("pin_memory", None)
    device = source.device if wanted is None else torch.device(wanted)
    if device.type != "cuda":
        made = _new(data_of(source), options, pin_memory=bool(non_blocking) and isinstance(source, SimulatedTensor))
        return copy_(made, source, bool(non_blocking))
    device = placed(device)
    stream = current_stream(device)
    data = _new(data_of(source), options, pin_memory=False)
    target = SimulatedTensor(data, device, allocate(data, stream, "aten::_to_copy"))
    if stream.capture is not None:
        stream.capture.own(target.allocation)
    return copy_(target, source, bool(non_blocking))


def _new(data: Tensor, options: dict[str, Any], pin_memory: bool) -> Tensor:
    """Returns new memory with the layout of a copy."""
    like = aten._to_copy.default(data, **options)
    return torch.empty_strided(like.size(), like.stride(), dtype=like.dtype, pin_memory=pin_memory)


def copy_(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Runs aten::copy_."""
    if isinstance(target, SimulatedTensor) and isinstance(source, SimulatedTensor):
        _between(target, source)
    elif isinstance(target, SimulatedTensor):
        _from_host(target, source, non_blocking)
    elif isinstance(source, SimulatedTensor):
        _to_host(target, source, non_blocking)
    else:
        target.copy_(source)
    return target


def foreach_copy_(targets: Sequence[Tensor], sources: Sequence[Tensor], non_blocking: bool = False) -> None:
    """Runs aten::_foreach_copy_: one kernel if each list has one dtype, and both have the same layouts."""
    devices = {each.device for each in [*targets, *sources]}
    is_alike = len({each.dtype for each in targets}) == len({each.dtype for each in sources}) == len(devices) == 1
    same = all(a.size() == b.size() and a.stride() == b.stride() for a, b in zip(targets, sources, strict=True))
    if not (is_alike and same and isinstance(targets[0], SimulatedTensor)):
        for target, source in zip(targets, sources, strict=True):
            copy_(target, source, non_blocking)
        return
    into, of = [data_of(each) for each in targets], [data_of(each) for each in sources]
    _run(current_stream(targets[0].device), aten._foreach_copy_.default, into, of)


def _run(
    stream: Stream,
    function: Any,
    target: Any,
    source: Any,
    from_host: Tensor | None = None,
    to_host: Tensor | None = None,
) -> None:
    """Starts a copy of data on a stream."""

    def kernel(result: Any) -> Kernel:
        return kernel_of(function, (target, source), {}, result)._replace(from_host=from_host, to_host=to_host)

    _start(stream, lambda: function(target, source), kernel, function._schema.name)


def _start(stream: Stream, work: Callable[[], Any], kernel: Callable[[Any], Kernel], name: str) -> None:
    if stream.capture is not None:
        stream.capture.record(work, kernel)
    else:
        start(stream, [kernel(work())], name)


def _between(target: SimulatedTensor, source: SimulatedTensor) -> None:
    if target.device == source.device:
        _run(current_stream(target.device), aten.copy_.default, target.data_on_cpu, source.data_on_cpu)
        return
    # PyTorch orders both streams around a copy between devices, which the one of the source makes.
    found.count_copy("between devices", source)
    mine, other = current_stream(source.device), current_stream(target.device)
    mine.wait_stream(other)
    target.data_on_cpu.copy_(source.data_on_cpu)
    note(mine, "aten::copy_", [Access(source.data_on_cpu)], [Access(target.data_on_cpu)])
    other.wait_stream(mine)


def _from_host(target: SimulatedTensor, source: Tensor, non_blocking: bool) -> None:
    stream, data = current_stream(target.device), target.data_on_cpu
    if source.is_pinned() and non_blocking:
        _run(stream, aten.copy_.default, data, source, from_host=source)
        return
    refuse_in_capture("copy from pageable memory, or one that waits")
    found.count_copy("to a device", target)
    data.copy_(source)
    note(stream, "aten::copy_", [], [Access(data)])
    wait_on_host(stream.clock, "a copy to a device")


def _to_host(target: Tensor, source: SimulatedTensor, non_blocking: bool) -> None:
    stream, data = current_stream(source.device), source.data_on_cpu
    if target.is_pinned() and non_blocking:
        _run(stream, aten.copy_.default, target, data, to_host=target)
        return
    refuse_in_capture("copy to pageable memory, or one that waits")
    found.count_copy("to the host", source)
    note(stream, "aten::copy_", [Access(data)], [])
    wait_on_host(stream.clock, "a copy to the host")
    target.copy_(data)
