"""Operations of simulated tensors: checked as PyTorch's for CUDA, run on the CPU, and entered in their stream."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from tests.device.simulation import copies
from tests.device.simulation.kernels import Kernel, kernel_of, start
from tests.device.simulation.memory import allocate
from tests.device.simulation.placement import INDEXED, device_of
from tests.device.simulation.streams import Stream, current_stream, refuse_in_capture, wait_on_host
from tests.device.simulation.tensors import SimulatedTensor, data_of

aten = torch.ops.aten
COPIES: dict[Any, Any] = {
    aten._to_copy.default: copies.to_copy,
    aten.copy_.default: copies.copy_,
    aten._foreach_copy_.default: copies.foreach_copy_,
}
HOST_WAITS = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten._unique2.default,
    aten.repeat_interleave.Tensor,
}
"""Operations with a result or a shape that the host reads."""


def run(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs one operation, as __torch_dispatch__ and as PyTorch's fallback for CUDA."""
    if function in COPIES:
        return COPIES[function](*args, **kwargs)
    if function not in CELLS and function._can_decompose():  # in inference mode
        result = function.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
    device = device_of(function, args, kwargs)
    stream = current_stream(device)
    inner_args, inner_kwargs = tree_map(data_of, (args, kwargs))
    if inner_kwargs.get("device") is not None:
        inner_kwargs["device"] = "cpu"
    if _waits(function, args):
        refuse_in_capture(function._schema.name)
        wait_on_host(stream.clock, function._schema.name)
    result = _start(stream, function, inner_args, inner_kwargs)
    return _wrapped(result, device, stream, function, (args, kwargs))


def _waits(function: Any, args: Any) -> bool:
    by_mask = function in INDEXED and any(each is not None and each.dtype == torch.bool for each in args[1])
    return by_mask or function in HOST_WAITS


def _start(stream: Stream, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    def kernel(result: Any) -> Kernel:
        return kernel_of(function, args, kwargs, result)

    def work() -> Any:
        return CELLS.get(function, function)(*args, **kwargs)

    if stream.capture is not None:
        return stream.capture.record(work, kernel, kwargs.get("generator"))
    result = work()
    made = kernel(result)
    if made.has_effect:
        start(stream, [made], function._schema.name)
    return result


def _wrapped(result: Any, device: torch.device, stream: Stream, function: Any, given: Any) -> Any:
    known = {id(each.data_on_cpu): each for each in tree_leaves(given) if isinstance(each, SimulatedTensor)}

    def wrap(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if id(value) in known:
            return known[id(value)]
        allocation = allocate(value, stream, function._schema.name)
        if stream.capture is not None:
            stream.capture.own(allocation)
        # In inference mode too, views of other tensors are none of inference.
        with torch.inference_mode(value.is_inference()):
            return SimulatedTensor(value, device, allocation)

    return tree_map(wrap, result)


def _cell(
    of_inputs: Tensor, of_state: Tensor, cell: Tensor, input_bias: Tensor | None = None, bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """aten::_thnn_fused_lstm_cell, which PyTorch has for GPUs alone."""
    gates = of_inputs + of_state
    if input_bias is not None and bias is not None:
        gates = gates + input_bias + bias
    write, forget, new, read = gates.chunk(4, 1)
    write, forget, new, read = write.sigmoid(), forget.sigmoid(), new.tanh(), read.sigmoid()
    after = forget * cell + write * new
    return read * after.tanh(), after, torch.cat([write, forget, new, read], 1)


def _cell_backward(
    of_output: Tensor | None, of_cell: Tensor | None, before: Tensor, after: Tensor, gates: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    write, forget, new, read = gates.chunk(4, 1)
    of_output = torch.zeros_like(after) if of_output is None else of_output
    squashed = after.tanh()
    total = of_output * read * (1 - squashed * squashed) + (0 if of_cell is None else of_cell)
    of_gates = torch.cat(
        [
            total * new * write * (1 - write),
            total * before * forget * (1 - forget),
            total * write * (1 - new * new),
            of_output * squashed * read * (1 - read),
        ],
        1,
    )
    return of_gates, total * forget, of_gates.sum(0) if has_bias else None


CELLS = {
    aten._thnn_fused_lstm_cell.default: _cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _cell_backward,
}
"""Operations that PyTorch lacks for CPUs."""
SimulatedTensor.run = staticmethod(run)
