"""Memory shared by the learner and its actor processes, checked before use: touching more than there is kills.

https://man7.org/linux/man-pages/man5/tmpfs.5.html
"""

import os
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from kubebeast_learner.config import ConfigError

SHARED_MEMORY = Path("/dev/shm")
_PAGE = os.sysconf("SC_PAGESIZE")
_ADVICE = "or give it more (docker: --shm-size; Kubernetes: an emptyDir of medium Memory)"


def require_shared_memory(sizes: Iterable[int], what: str, lower: str) -> None:
    """Raises ConfigError if pieces of `sizes` bytes do not fit. `what`: the pieces; `lower`: settings to lower."""
    if not SHARED_MEMORY.is_dir():
        return
    needed = sum(-(-size // _PAGE) * _PAGE for size in sizes)
    status = os.statvfs(SHARED_MEMORY)
    free = status.f_bavail * status.f_frsize
    if free < needed:
        raise ConfigError(
            f"{what} take {_in_mib(needed)}, {SHARED_MEMORY} has {_in_mib(free)}: lower {lower}, {_ADVICE}"
        )


def shared_memory(num_bytes: int) -> Tensor:
    """Returns uint8 [num_bytes] that other processes may map. Raises ConfigError if there is less."""
    require_shared_memory([num_bytes], "the unrolls of all actor processes", "num_actors, num_buffers or unroll_length")
    memory: Tensor = torch.empty(num_bytes, dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]
    return memory


def _in_mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.1f} MiB"
