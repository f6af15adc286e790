"""A blind model for a real learner on serial environments, and a loss that records the rows of its training.

kubebeast learner --model harness.chaos.witness:Blind --loss harness.chaos.witness:loss
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from harness.chaos import serials
from kubebeast_learner.algorithm.losses import LossOutput, impala_loss
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.models import CoreState, LeafSpec, ModelInputs, ModelOutput

FLAGS = (f"--model={__name__}:Blind", f"--loss={__name__}:loss", "--compile=off")
FOLDER = "WITNESS_FOLDER"
"""Environment variable with the folder of the records, one file per process, so that they outlive a SIGKILL."""

_calls = itertools.count()


class Blind(nn.Module):
    """A model with the same policy and value for all observations, so that acting and learning cost almost nothing."""

    def __init__(self, observation: Sequence[LeafSpec], num_actions: int) -> None:
        super().__init__()
        self.policy_logits = nn.Parameter(torch.zeros(num_actions))
        self.baseline = nn.Parameter(torch.zeros(()))

    def initial_state(self, batch_size: int) -> CoreState:
        return ()

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        rows = torch.zeros_like(inputs.reward)
        return ModelOutput(rows.unsqueeze(-1) + self.policy_logits, rows + self.baseline), core_state


def loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
    """Returns IMPALA's loss after writing the batch's serial numbers to the record."""
    if next(_calls) > 0:  # the first call is the learner's trial on made-up rows
        (observation,) = (leaf.numpy() for leaf in rollout.observation)
        rows = observation if observation.ndim == 3 else serials.newest(observation)
        found = serials.runs(rows, rollout.valid.numpy())
        with Path(os.environ[FOLDER], f"{os.getpid()}.runs").open("ab") as file:
            file.write(found.tobytes())
    return impala_loss(output, rollout, config, entropy_cost)


def testimony(folder: Path) -> list[NDArray[np.int64]]:
    """Returns `serials.runs` of all training batches of all learners of the run, one array per process."""
    return [of_life(folder, path.stem) for path in sorted(folder.glob("*.runs"))]


def of_life(folder: Path, pid: str | int) -> NDArray[np.int64]:
    """Returns `serials.runs` of the training batches of a process, without an incomplete last one after a kill."""
    data = (folder / f"{pid}.runs").read_bytes()
    return np.frombuffer(data[: len(data) // 24 * 24], np.int64).reshape(-1, 3)
