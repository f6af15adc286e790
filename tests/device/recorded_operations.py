"""CUDA graphs on a CPU: PyTorch's operations are recorded with their addresses, and a replay repeats them there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kubebeast_learner.machine.cuda_graph import CaptureError

HOST_WAITS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::lift_fresh")
"""Operations that a capture refuses: the host reads their result, their shape depends on data, or they copy numbers of
Python from memory that is not pinned."""


@dataclass(slots=True)
class _Operation:
    function: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    outputs: list[Tensor]
    """The tensors of the result that later operations read; views of arguments have their memory."""

    def repeat(self) -> None:
        new = tensors_in(self.function(*self.arguments, **self.options))
        for mine, value in zip(self.outputs, new, strict=True):
            if address_of(mine) != address_of(value):
                mine.copy_(value)


@dataclass
class OperationRecorder:
    """Implements Recorder, with the rules of a capture: the work's operations are recorded and, in effect, not run.

    Python is not repeated, so numbers that it computed stay those of the recording. Waits of the host are refused.
    """

    num_recordings: int = 0
    num_starts: int = 0
    num_operations: list[int] = field(default_factory=list)
    """Operations of each recording."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        tape = OperationTape()
        try:
            with tape:
                work()
        finally:
            tape.undo()
        self.num_recordings += 1
        self.num_operations.append(len(tape.operations))

        def start() -> None:
            self.num_starts += 1
            tape.repeat()

        return start


class OperationTape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context in which operations are recorded with their addresses."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[_Operation] = []
        self._own: set[int] = set()
        self._before: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function._schema.name in HOST_WAITS:
            raise CaptureError(f"{function._schema.name}: operation not permitted when stream is capturing")
        for argument, value in zip(function._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self._keep(tree_leaves(value))
        for argument in function._schema.arguments:
            if argument.name in kwargs and argument.alias_info is not None and argument.alias_info.is_write:
                self._keep(tree_leaves(kwargs[argument.name]))
        result = function(*args, **kwargs)
        given = {address_of(each) for each in tensors_in((args, kwargs))}
        outputs = tensors_in(result)
        self._own.update({address_of(each) for each in outputs} - given)
        if "empty" not in function._schema.name:  # memory without content, which a later operation may resize
            self.operations.append(_Operation(function, args, kwargs, outputs))
        return result

    def repeat(self) -> None:
        """Runs the operations again, with the numbers that are at their addresses now."""
        with torch.no_grad():
            for operation in self.operations:
                operation.repeat()

    def undo(self) -> None:
        """Gives the memory that was written to its content from before."""
        with torch.no_grad():
            for tensor, before in self._before.values():
                tensor.copy_(before)

    def _keep(self, written: list[Any]) -> None:
        for each in written:
            address = address_of(each) if isinstance(each, Tensor) else 0
            if address and address not in self._own and address not in self._before:
                whole = torch.empty(0, dtype=torch.uint8).set_(each.untyped_storage())
                self._before[address] = (whole, whole.clone())


def tensors_in(result: Any) -> list[Tensor]:
    return [each for each in tree_leaves(result) if isinstance(each, Tensor)]


def address_of(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
