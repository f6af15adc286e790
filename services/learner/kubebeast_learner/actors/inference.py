"""Inference threads, which answer batches of rows with sampled actions."""

import logging
import threading
from typing import TYPE_CHECKING

import torch

from kubebeast_learner.actors.batch_rows import Array, BatchRows
from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.graph_runner import GraphRunner
from kubebeast_learner.actors.opponents import Opponents, joined, numbers_of
from kubebeast_learner.actors.pool_thread import InferencePool, PoolThread
from kubebeast_learner.actors.runner import Answer, EagerRunner, Runner
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.league.version import Version
from kubebeast_learner.machine.cuda_graph import CaptureError
from kubebeast_learner.models import Model

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch

_log = logging.getLogger(__name__)


class InferenceWorker(PoolThread):
    """One thread that runs the newest published weights on the pool's batches.

    Workers of one pool share its core states and its frames.
    """

    def __init__(
        self,
        pool: InferencePool,
        weights: WeightPublisher,
        *,
        core_states: CoreStateTable | None = None,
        frames: FrameTable | None = None,
        device: torch.device | str = "cpu",
        seed: int = 0,
        use_graphs: bool = False,
        compile: bool = False,
        may_answer: threading.Event | None = None,
        opponents: Opponents | None = None,
    ) -> None:
        """core_states: None for models without a recurrent core. frames: None if the pool gives whole stacks.
        seed: seed of the action sampling, different for each worker. use_graphs: runs the model by CUDA graphs; only
        on a GPU, with both tables on it. compile: compiles the convolutions of the graphs. may_answer: see PoolThread.
        opponents: those of the slots; None if no rows are of opponents. They need whole stacks, and no CUDA graphs.
        """
        super().__init__(pool, device, may_answer)
        self._weights, self._opponents = weights, opponents
        generator = torch.Generator(self._device).manual_seed(seed)
        self._eager = EagerRunner(self._device, generator, core_states, frames)
        self._runner: Runner = self._eager
        if use_graphs:
            drawing = torch.Generator(self._device).manual_seed(seed)
            self._runner = GraphRunner(self._device, drawing, core_states, frames, compile=compile)

    def _answer(self, batch: "InferenceBatch") -> None:
        numbers = None
        with self._weights.acquire() as (model, version):
            if self._opponents is None:
                answer = self._run_model(batch, model, version)
            else:
                answer, numbers = self._answer_each(batch, model, version, self._opponents)
        action, record, baseline, core_state = answer
        leaves = model.distribution.to_leaves(action)
        before = None if core_state is None else core_state.numpy()
        batch.reply(leaves, record.numpy(), baseline.numpy(), version, before, numbers)

    def _answer_each(
        self, batch: "InferenceBatch", model: Model, version: int, opponents: Opponents
    ) -> tuple[Answer, Array]:
        """Runs the model of each policy on its rows; also returns the number of the policy of each row, int64 [N]."""
        rows = opponents.split(batch)
        answers: dict[Version | None, Answer] = {}
        for player, places in rows.items():
            own = model if player is None else player.models[self._device]
            answers[player] = self._eager.run(BatchRows.of(batch, places), own, version)
        return joined(answers, rows, batch.num_rows), numbers_of(rows, batch.num_rows)

    def _run_model(self, batch: "InferenceBatch", model: Model, version: int) -> Answer:
        try:
            return self._runner.run(batch, model, version)
        except CaptureError as error:
            _log.warning("inference runs without CUDA graphs, as its model cannot be recorded: %s", error)
            self._runner = self._eager
            return self._runner.run(batch, model, version)
