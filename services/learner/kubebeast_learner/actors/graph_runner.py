"""A step of the model for a batch of rows as one CUDA graph: a copy in, one start and a copy out.

Started operation by operation, a step of a small network costs the host ten times as long as the GPU, and holds the
interpreter's lock, for which the learner waits.
"""

import contextlib
import copy
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.runner import Answer, act, states_at_starts
from kubebeast_learner.actors.slot_table import NO_SLOT
from kubebeast_learner.actors.weights import copy_weights, weights_of
from kubebeast_learner.algorithm.precision import use_channels_last
from kubebeast_learner.algorithm.rollout import to_host, wait_for_stream
from kubebeast_learner.machine.cuda_graph import GraphRecorder, Recorder, recording
from kubebeast_learner.machine.packed_tensors import PackedTensors
from kubebeast_learner.models import Model, ModelInputs

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch

_log = logging.getLogger(__name__)

_MIN_ROWS = 8
_Rows = Sequence[NDArray[np.generic]]
"""The inputs of a batch, [N, ...] each."""


def bucket_of(num_rows: int) -> int:
    """Returns the number of rows to which a batch is padded: a power of two, or one and a half times that."""
    size = _MIN_ROWS
    while size < num_rows:
        size = size * 3 // 2 if size & (size - 1) == 0 else size // 3 * 4
    return size


class GraphRunner:
    """Runs the model by one graph for each bucket of rows, recorded when it is needed first. Implements Runner.

    The graphs read weights of this runner's own, which are copied from each new version.
    """

    def __init__(
        self,
        device: torch.device,
        generator: torch.Generator,
        core_states: CoreStateTable | None = None,
        frames: FrameTable | None = None,
        recorder: Recorder | None = None,
        compile: bool = False,
    ) -> None:
        """generator: source of the action sampling, on `device`, as is the table of core states. recorder: None for
        CUDA graphs. compile: compiles the model's low_precision_part, its convolutions, once for all buckets.
        """
        self._device, self._generator = device, generator
        self._recorder = recorder or GraphRecorder(device, [generator])
        self._core_states, self._frames = core_states, frames
        self._tables = [table for table in (core_states, frames) if table is not None]
        self._compile = compile
        self._model: Model | None = None
        self._weights: list[Tensor] = []
        self._version = -1
        self._steps: dict[int, _Step] = {}
        self._sizes: list[int] = []

    def run(self, batch: "InferenceBatch", model: Model, version: int) -> Answer:
        """See `Runner.run`. Raises CaptureError if the model cannot be recorded; the batch is then unanswered."""
        self._load(model, version)
        rows = self._rows(batch)
        step = self._start(batch, rows)
        if step is None:
            with recording():
                step = self._start(batch, rows, may_record=True)
        assert step is not None, "may_record"
        answer = step.answer(len(rows[0]))
        if answer.core_state is None:
            wait_for_stream(self._device)
            return answer
        return answer._replace(core_state=to_host(states_at_starts(answer.core_state, batch))[0])

    def _start(self, batch: "InferenceBatch", rows: _Rows, *, may_record: bool = False) -> "_Step | None":
        """Starts the step of a batch; None if it has to be recorded, or a table of slots moved, and may not be."""
        size = bucket_of(len(rows[0]))
        with contextlib.ExitStack() as locks:
            for table in self._tables:
                locks.enter_context(table.lock)
                if not may_record and not table.has_room(batch):
                    return None
                table.make_room(batch)
            sizes = [len(table) for table in self._tables]
            if sizes != self._sizes:  # the graphs have old addresses
                self._steps.clear()
                self._sizes = sizes
            if size not in self._steps:
                if not may_record:
                    return None
                self._steps[size] = self._recorded(rows, size)
            if self._frames is not None:
                self._frames.begin_episodes(batch)
            step = self._steps[size]
            step.fill(rows)
            step.start()
            return step

    def _recorded(self, rows: _Rows, size: int) -> "_Step":
        assert self._model is not None, "_load comes first"
        step = _Step(self._model, rows, size, self._device, self._generator, self._core_states, self._frames)
        try:
            step.run()
        except Exception as error:  # the compiler's own errors have no common base
            part = self._model.low_precision_part
            if not self._compile or part is None:
                raise
            _log.warning("torch.compile failed, inference runs without it: %s", str(error).partition("\n")[0])
            self._compile, part._compiled_call_impl = False, None
            step.run()
        step.record(self._recorder)
        return step

    def _load(self, model: Model, version: int) -> None:
        if self._model is None:
            with torch.inference_mode(False):
                self._model = copy.deepcopy(model)
                use_channels_last(self._model, self._device)
            self._weights = weights_of(self._model)
            if self._compile and self._model.low_precision_part is not None:
                self._model.low_precision_part.compile(dynamic=True)
        elif version == self._version:
            return
        copy_weights(weights_of(model), self._weights)
        self._version = version

    def _rows(self, batch: "InferenceBatch") -> _Rows:
        """Returns the rows in the order of `_Step`: [N, ...] each."""
        assert self._model is not None, "_load comes first"
        last_action = self._model.distribution.from_leaves(batch.last_actions)
        return [batch.slots, last_action.numpy(), batch.is_first, batch.rewards, batch.task, *batch.observation]


class _Step:
    """A step for a fixed number of rows, at fixed addresses. Padding has no slot."""

    def __init__(
        self,
        model: Model,
        rows: _Rows,
        size: int,
        device: torch.device,
        generator: torch.Generator,
        core_states: CoreStateTable | None,
        frames: FrameTable | None,
    ) -> None:
        self._model, self._device, self._generator = model, device, generator
        self._core_states, self._frames = core_states, frames
        layouts = [(torch.from_numpy(each).dtype, (size, *each.shape[1:])) for each in rows]
        layouts[0] = (torch.int64, (size,))  # indices
        self._inputs = PackedTensors(layouts, device)
        distribution = model.distribution
        layouts = [
            (distribution.action_dtype, (size, *distribution.action_shape)),
            (torch.float32, (size, distribution.record_size)),
            (torch.float32, (size,)),
        ]
        self._outputs = PackedTensors(layouts, device)
        self._core_state: Tensor | None = None
        self._start: Callable[[], None] = self.run
        self._num_filled = 0
        self._inputs.host[0][:] = NO_SLOT

    def record(self, recorder: Recorder) -> None:
        """Records the step, after one run with padding alone. Raises CaptureError."""
        self._start = recorder.record(self.run)

    def fill(self, rows: _Rows) -> None:
        """Puts N rows in, and padding after them."""
        num_rows = len(rows[0])
        for mine, new in zip(self._inputs.host, rows, strict=True):
            mine[:num_rows] = new
        self._inputs.host[0][num_rows : self._num_filled] = NO_SLOT
        self._num_filled = num_rows

    def start(self) -> None:
        self._start()

    def answer(self, num_rows: int) -> Answer:
        """Returns the first rows: outputs on the host, complete once the stream is done, and states on the device."""
        action, record, baseline = (torch.from_numpy(output[:num_rows]) for output in self._outputs.host)
        return Answer(action, record, baseline, None if self._core_state is None else self._core_state[:num_rows])

    def run(self) -> None:
        """Runs the step operation by operation."""
        self._inputs.start_upload()
        slots, last_action, is_first, rewards, task, *leaves = self._inputs.device
        if self._frames is not None:
            observation = tuple(leaf.unsqueeze(0) for leaf in self._frames.advance(slots, is_first, leaves))
        else:
            observation = self._model.with_frames_first((leaf.unsqueeze(0) for leaf in leaves), axis=2)
        inputs = ModelInputs(
            observation=observation,
            reward=rewards.unsqueeze(0),
            last_action=last_action.unsqueeze(0),
            is_first=is_first.unsqueeze(0),
            task=task.unsqueeze(0) if self._model.num_tasks > 1 else None,
        )
        *outputs, self._core_state = act(self._model, inputs, self._generator, self._core_states, slots)
        for mine, new in zip(self._outputs.device, outputs, strict=True):
            mine.copy_(new)
        self._outputs.start_download()
