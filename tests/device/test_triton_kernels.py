"""A compiled update is Triton kernels with machine code for an H100."""

import importlib.util
import json

import pytest

from tests.device.programs import run

PROGRAM = """
from tests.device.simulation.gpus import install
install(1)
from tests.device.triton_kernels import main
main({model!r})
"""
MIN_KERNELS = {"shallow": 30, "deep": 50}


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton comes with PyTorch's CUDA builds")
@pytest.mark.parametrize("model", MIN_KERNELS)
def test_an_update_is_built_for_an_h100(model: str, simulation: dict[str, str]) -> None:
    printed = run(["-c", PROGRAM.format(model=model)], simulation)
    num_bytes = json.loads(printed.splitlines()[-1])
    assert len(num_bytes) >= MIN_KERNELS[model] and min(num_bytes.values()) > 0
