"""CUDA graphs: work that is recorded once, at fixed addresses, and then started by one call.

https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

import torch


class CaptureError(RuntimeError):
    """The work cannot be recorded, for instance because it waits for the device; the message is the device's."""


class Recorder(Protocol):
    """A recorder of work that one thread starts, one piece at a time."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Calls `work`, records its kernels instead of running them, and returns a function that starts all of them.

        The kernels read and write the same memory at every start. Allocations of libraries in a first call cannot be
        recorded, so run `work` once before, within the same `recording`. Raises CaptureError.
        """


class _Recording:
    """Access to a device: one thread that records, or any number of threads with work that may wait for the device."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._recorder: int | None = None
        """Identifier of the thread that records."""
        self._num_waiting = self._num_eager = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Context of one thread, which may enter it again; waits until all `eager` ones have been left."""
        me = threading.get_ident()
        if self._recorder == me:
            yield
            return
        with self._changed:
            self._num_waiting += 1
            self._changed.wait_for(lambda: self._recorder is None and self._num_eager == 0)
            self._num_waiting -= 1
            self._recorder = me
        try:
            yield
        finally:
            with self._changed:
                self._recorder = None
                self._changed.notify_all()

    @contextmanager
    def eager(self) -> Iterator[None]:
        """Context of any number of threads, not entered twice by one; waits until no other thread is `recording` or
        waits to.
        """
        if self._recorder == threading.get_ident():
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._recorder is None and self._num_waiting == 0)
            self._num_eager += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_eager -= 1
                self._changed.notify_all()


_process = _Recording()


def recording() -> AbstractContextManager[None]:
    """Context in which one thread prepares and records graphs. Enter it before a lock that others hold in `eager`."""
    return _process.recording()


def eager(device: torch.device) -> AbstractContextManager[None]:
    """Context of work that runs operation by operation; on a GPU it waits until no graph is being recorded.

    Libraries wait for the whole device now and then, when they allocate or compare algorithms. During a recording that
    is an error in both threads: https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__STREAM.html, "Stream
    Capture". Starts of graphs and plain kernels are not affected.
    """
    return _process.eager() if device.type == "cuda" else nullcontext()


class GraphRecorder:
    """Records CUDA graphs on one device. Implements Recorder."""

    def __init__(self, device: torch.device, generators: Sequence[torch.Generator] = ()) -> None:
        """generators: sources of random numbers on the device, which go on with every start."""
        self._device, self._generators = device, generators
        self._pool = torch.cuda.graph_pool_handle()  # graphs that never run together share their memory

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """See `Recorder.record`."""
        with recording(), torch.cuda.device(self._device):
            stream = torch.cuda.current_stream()
            if stream == torch.cuda.default_stream():  # it cannot record
                stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            graph = torch.cuda.CUDAGraph()
            for generator in self._generators:
                graph.register_generator_state(generator)
            try:
                with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
                    work()
            except RuntimeError as error:
                raise CaptureError(str(error).partition("\n")[0]) from error
        return graph.replay
