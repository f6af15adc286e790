"""The hooks of simulated GPUs in PyTorch. They are loaded before torch, which looks for GPUs once."""

import ctypes
import os

from tests.device.cuda_hooks import LIBRARY

_library = ctypes.CDLL(os.environ[LIBRARY], ctypes.RTLD_GLOBAL)


def refuse_pinned_memory(refused: bool) -> None:
    """Makes allocations of pinned memory by this thread fail, or succeed again."""
    _library.refuse_pinned_memory(ctypes.c_bool(refused))
