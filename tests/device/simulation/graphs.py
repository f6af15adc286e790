"""CUDA graphs: kernels recorded with their addresses, and started together on the stream of the caller."""

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tests.device.recorded_operations import OperationTape
from tests.device.simulation import refuse_pinned_memory
from tests.device.simulation.findings import fault, source_line
from tests.device.simulation.kernels import Kernel, start
from tests.device.simulation.memory import Allocation, allocation_of
from tests.device.simulation.streams import Stream, current_stream, default_stream, synchronize, use_stream
from tests.device.simulation.tensors import address_of_generator


class Graph:
    """Implements torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        self._tape = OperationTape()
        self._device = torch.device("cuda")
        self._kernels: list[Kernel] = []
        self._generators: list[torch.Generator] = []
        self._own: list[Allocation] = []
        self._others: dict[int, tuple[weakref.ref[Allocation], str]] = {}

    def register_generator_state(self, generator: torch.Generator) -> None:
        self._generators.append(generator)

    @contextlib.contextmanager
    def capture(self, stream: Stream) -> Iterator[None]:
        """Records the operations of a stream instead of running them."""
        if stream is default_stream(stream.device):
            raise RuntimeError("CUDA graphs must be captured on a non-default stream")
        stream.capture, self._device = self, stream.device
        refuse_pinned_memory(True)
        try:
            with use_stream(stream):
                yield
        finally:
            refuse_pinned_memory(False)
            stream.capture = None
            self._tape.undo()

    def record(self, work: Callable[[], Any], kernel_of: Callable[[Any], Kernel], generator: Any = None) -> Any:
        """Runs an operation of a capture and returns its result, without defined data until a start."""
        if generator is not None and address_of_generator(generator) not in map(address_of_generator, self._generators):
            raise RuntimeError(f"the graph does not know the generator: register_generator_state ({source_line()})")
        with self._tape:
            result = work()
        kernel = kernel_of(result)
        self._kernels.append(kernel)
        for access in [*kernel.reads(), *kernel.writes()]:
            allocation = allocation_of(access.tensor)
            if allocation is not None and not any(allocation is each for each in self._own):
                self._others[id(allocation)] = (weakref.ref(allocation), allocation.label)
        return result

    def own(self, allocation: Allocation) -> None:
        """Keeps memory that the capture has allocated."""
        self._own.append(allocation)

    def replay(self) -> None:
        """Starts the operations on the current stream of the device of the capture."""
        for other, label in self._others.values():
            if other() is None:
                fault(f"freed in use: {label}, which a graph reads or writes")
        self._tape.repeat()
        start(current_stream(self._device), [each for each in self._kernels if each.has_effect], "graph")


@contextlib.contextmanager
def graph(
    cuda_graph: Graph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
) -> Iterator[None]:
    """Implements torch.cuda.graph, which waits for the device first."""
    synchronize()
    with cuda_graph.capture(stream or Stream()):
        yield
