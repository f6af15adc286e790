"""Operations as they are started on a stream, at once or by a graph, with their reads, writes and copies."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from tests.device.recorded_operations import address_of, tensors_in
from tests.device.simulation.findings import fault, found, lock
from tests.device.simulation.memory import Access, Rows, note
from tests.device.simulation.placement import INDEXED
from tests.device.simulation.streams import Stream, finish_later

aten = torch.ops.aten
_BY_ROW = (aten.index_select.default, aten.index_copy_.default, aten.index_add_.default)
"""Operations on rows of their first argument, with the axis second and the index third."""
_GARBAGE = 0x77


class Kernel(NamedTuple):
    """An operation with its arguments and results as data on the CPU."""

    name: str
    reads: Callable[[], list[Access]]
    """Reads at the time of a start: rows are those that indices name then."""
    writes: Callable[[], list[Access]]
    from_host: Tensor | None = None
    """Pinned memory that the operation reads."""
    to_host: Tensor | None = None
    """Pinned memory that the operation writes."""

    @property
    def has_effect(self) -> bool:
        return bool(self.writes()) or self.to_host is not None


def kernel_of(function: Any, args: Any, kwargs: dict[str, Any], result: Any) -> Kernel:
    """Returns the reads and writes of an operation, by its schema. args, kwargs and result are data."""
    is_collective = function.namespace == "c10d"  # its schema names no tensors that change
    written = tensors_in(args) if is_collective else _written(function, args, kwargs)
    given = {address_of(each) for each in tensors_in((args, kwargs))}
    made = [each for each in tensors_in(result) if address_of(each) not in given]
    if "empty" in function._schema.name:
        made = []
    targets = {address_of(each) for each in written}
    read = [each for each in tensors_in((args, kwargs)) if address_of(each) not in targets]

    def rows(tensor: Tensor) -> Rows:
        return _rows(function, args) if tensor is args[0] else None

    return Kernel(
        function._schema.name,
        lambda: [Access(each, rows(each)) for each in read],
        lambda: [Access(each, rows(each)) for each in written] + [Access(each) for each in made],
    )


def start(stream: Stream, kernels: list[Kernel], name: str) -> None:
    """Enters kernels as one operation of a stream; their work is done on the CPU already."""
    with lock:
        reads = [access for kernel in kernels for access in kernel.reads()]
        writes = [access for kernel in kernels for access in kernel.writes()]
        if all(kernel.from_host is None and kernel.to_host is None for kernel in kernels) or len(kernels) > 1:
            found.launches[name] += 1
        number = note(stream, name, reads, writes)
        for kernel in kernels:
            if kernel.from_host is not None:
                found.count_copy("to a device", kernel.from_host)
                _watch(stream, number, kernel.from_host)
            if kernel.to_host is not None:
                found.count_copy("to the host", kernel.to_host)
                _hold_back(stream, number, kernel.to_host)


def _watch(stream: Stream, number: int, source: Tensor) -> None:
    """Finds changes of pinned memory before the host has waited for the copy that reads it."""
    before = source.clone()

    def compare() -> None:
        if not torch.equal(_bytes(source), _bytes(before)):
            fault("changed in use: pinned memory, before the host has waited for the copy to the device")

    finish_later(stream, number, compare)


def _hold_back(stream: Stream, number: int, target: Tensor) -> None:
    """Leaves garbage in pinned memory until the host has waited for the copy that writes it."""
    value = target.clone()
    _bytes(target).fill_(_GARBAGE)
    finish_later(stream, number, functools.partial(_copy_bytes, _bytes(value), target))


def _copy_bytes(source: Tensor, target: Tensor) -> None:
    _bytes(target).copy_(source)


def _bytes(tensor: Tensor) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():
        assert tensor.is_contiguous(), "copies between pinned memory and devices are contiguous here"
        return torch.from_numpy(tensor.detach().numpy().reshape(-1).view("uint8")) if tensor.numel() else tensor


def _written(function: Any, args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    values = dict(zip((each.name for each in function._schema.arguments), args, strict=False)) | kwargs
    return [
        tensor
        for argument in function._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write and argument.name in values
        for tensor in tree_leaves(values[argument.name])
        if isinstance(tensor, Tensor)
    ]


def _rows(function: Any, args: Any) -> Rows:
    if function in INDEXED:
        index = args[1][0]
    elif function in _BY_ROW and args[1] == 0:
        index = args[2]
    else:
        return None
    source = args[0]
    is_whole = source.numel() * source.element_size() == source.untyped_storage().nbytes()
    if index is None or index.dtype == torch.bool or not is_whole:
        return None
    return frozenset((index % len(source)).flatten().tolist()) if len(source) else None
