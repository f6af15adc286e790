"""Simulated GPUs. Import this package before torch; the variable SIMULATED_CUDA_HOOKS names its compiled hooks."""

from tests.device.simulation.hooks import refuse_pinned_memory

__all__ = ["refuse_pinned_memory"]
