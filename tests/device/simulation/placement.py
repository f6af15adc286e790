"""Devices on which operations run, by PyTorch's rules."""

from typing import Any

import torch
from torch import Tensor

from tests.device.recorded_operations import tensors_in
from tests.device.simulation.findings import source_line
from tests.device.simulation.streams import index_of, refuse_in_capture, wait_on_host
from tests.device.simulation.tensors import SimulatedGenerator, SimulatedTensor

aten = torch.ops.aten
INDEXED = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default)
"""Operations with a list of indices as second argument, which may be on the CPU."""
NUMBERS_OF_CPU = ("foreach", "fill", "where", "lerp", "clamp")
"""Operations that take numbers of the CPU beside those that PyTorch tags as pointwise."""


def placed(device: Any) -> torch.device:
    """Returns a device with its index; raises RuntimeError if there is no such device."""
    index = index_of(device)
    if index >= torch.cuda.device_count():
        raise RuntimeError("CUDA error: invalid device ordinal")
    return torch.device("cuda", index)


def device_of(function: Any, args: Any, kwargs: dict[str, Any]) -> torch.device:
    """Returns the GPU on which an operation runs; raises RuntimeError for tensors or generators of several devices."""
    if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
        return placed(kwargs["device"])
    tensors = tensors_in((args, kwargs))
    if function in INDEXED:
        _check_indices(args[0], args[1])
        tensors = [args[0], *tensors_in(args[2:])]
    devices = {each.device for each in tensors if isinstance(each, SimulatedTensor)}
    strangers = [each for each in tensors if not isinstance(each, SimulatedTensor)]
    takes_numbers = torch.Tag.pointwise in function.tags or any(name in str(function) for name in NUMBERS_OF_CPU)
    if len(devices) != 1 or any(each.dim() > 0 or not takes_numbers for each in strangers):
        _refuse(function, tensors)
    device = devices.pop()
    _check_generator(function, kwargs.get("generator"), device)
    return device


def _check_indices(source: Tensor, indices: list[Tensor | None]) -> None:
    for index in indices:
        if index is None:
            continue
        if not isinstance(index, SimulatedTensor):
            if not isinstance(source, SimulatedTensor):
                continue
            refuse_in_capture("copy of an index from pageable memory")
            wait_on_host({}, "an index on the CPU")
        elif index.device != source.device:
            _refuse("aten::index", [source, index])


def _check_generator(function: Any, generator: torch.Generator | None, device: torch.device) -> None:
    if generator is None:
        return
    place = SimulatedGenerator.place_of(generator)
    if place != device:
        raise RuntimeError(
            f"{function}: Expected a '{device}' device type for generator but found '{place}' ({source_line()})"
        )


def _refuse(function: Any, tensors: list[Tensor]) -> None:
    found = ", ".join(f"{each.device} {list(each.shape)}" for each in tensors)
    raise RuntimeError(f"Expected all tensors to be on the same device, but {function} got {found} ({source_line()})")
