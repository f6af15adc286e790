"""Tensors that name a simulated device and hold their data on the CPU."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from tests.device.simulation.memory import Allocation
from tests.device.simulation.streams import Stream, index_of


class SimulatedTensor(Tensor):
    """A tensor of a device. Its data is a tensor of the CPU with the same layout."""

    run: ClassVar[Callable[..., Any]]
    """Runs an operation; set by `operations`."""
    data_on_cpu: Tensor
    allocation: Allocation
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, data: Tensor, device: torch.device, allocation: Allocation) -> "SimulatedTensor":
        made: SimulatedTensor = Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            device=device,
        )
        made.data_on_cpu, made.allocation = data, allocation
        return made

    def __init__(self, *arguments: Any) -> None:
        super().__init__()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return cls.run(function, *args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> Any:  # type: ignore[override]
        return f"SimulatedTensor({self.data_on_cpu}, device='{self.device}')"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        with torch.no_grad():
            made = self.detach().clone()
        made.requires_grad_(self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            made._is_param = True
        if self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.detach().cpu().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def data_ptr(self) -> int:
        return self.data_on_cpu.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.data_on_cpu.untyped_storage()

    def record_stream(self, stream: Stream) -> None:  # type: ignore[override]
        self.allocation.users.add(stream.name)


class SimulatedGenerator(torch.Generator):
    """A generator of a device; its numbers are those of one on the CPU."""

    _places: ClassVar[dict[int, torch.device]] = {}
    """By their address, because PyTorch makes new objects for a generator."""

    def __new__(cls, device: Any = "cpu") -> "SimulatedGenerator":
        made, place = super().__new__(cls), torch.device(device)
        cls._places[address_of_generator(made)] = (
            torch.device("cuda", index_of(place)) if place.type == "cuda" else place
        )
        return made

    @classmethod
    def place_of(cls, generator: torch.Generator) -> torch.device:
        return cls._places.get(address_of_generator(generator), torch.device("cpu"))


def address_of_generator(generator: torch.Generator) -> int:
    return int(generator._cdata)  # type: ignore[attr-defined]


def data_of(value: Any) -> Any:
    """Returns the data of a simulated tensor, and anything else as it is."""
    return value.data_on_cpu if isinstance(value, SimulatedTensor) else value
