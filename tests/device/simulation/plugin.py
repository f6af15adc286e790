"""Plug-in of pytest: tests run on a machine with two simulated GPUs, and fail for faults that the simulation finds."""

from collections.abc import Iterator

import pytest

from tests.device.simulation.findings import found
from tests.device.simulation.gpus import install

install(2)


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    found.reset()
    yield
    if found.faults:
        pytest.fail("\n".join(dict.fromkeys(found.faults)))
