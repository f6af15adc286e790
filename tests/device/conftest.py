"""Fixtures of the tests of graphs and of simulated GPUs."""

import fcntl
import os
from collections.abc import Iterator

import pytest
import torch

from kubebeast_learner.models import core
from tests.device.cuda_hooks import LIBRARY, compile_hooks
from tests.device.programs import ROOT


@pytest.fixture
def lstms_do_as_in_a_capture(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every row is a sequence; and oneDNN's LSTM keeps state of its own between its forward and backward pass."""
    monkeypatch.setattr(core, "_starts_of_sequences", lambda is_first: list(range(len(is_first))))
    torch._C._set_mkldnn_enabled(False)
    yield
    torch._C._set_mkldnn_enabled(True)


@pytest.fixture(scope="session")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the environment variables of programs with simulated GPUs."""
    folder = tmp_path_factory.getbasetemp()
    library = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "simulated_cuda_hooks.so"
    with library.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker compiles it for all
        if not library.exists():
            compile_hooks(tmp_path_factory.mktemp("hooks")).replace(library)
    return {**os.environ, LIBRARY: str(library), "SIMULATED_GPUS": "2", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
