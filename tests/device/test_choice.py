"""CUDA graphs are used on a GPU, unless code of the user's own takes part or the user turns them off."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from kubebeast_learner.algorithm.precision import should_use_graphs
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig, TrainingConfig

BUILT_IN = TrainingConfig()
OWN = [
    {"model": ModelConfig(model="mine:Net")},
    {"model": ModelConfig(encoder=("screen=mine:Eye",))},
    {"loss": LossConfig(loss="mine:loss")},
    {"optimizer": OptimizerConfig(optimizer="mine:Optimizer")},
]


def choose(config: TrainingConfig, choice: Any, device: str) -> bool:
    return should_use_graphs(replace(config, run=replace(config.run, cuda_graphs=choice)), torch.device(device))


def test_built_in_code_runs_as_graphs_on_a_gpu_alone() -> None:
    assert choose(BUILT_IN, "auto", "cuda:0") and choose(BUILT_IN, "on", "cuda:0")
    assert not choose(BUILT_IN, "off", "cuda:0")
    assert not choose(BUILT_IN, "auto", "cpu") and not choose(BUILT_IN, "on", "cpu")


@pytest.mark.parametrize("changes", OWN)
def test_code_of_the_user_runs_as_graphs_on_request(changes: dict[str, Any]) -> None:
    config = replace(BUILT_IN, **changes)
    assert not choose(config, "auto", "cuda:0")
    assert choose(config, "on", "cuda:0")
