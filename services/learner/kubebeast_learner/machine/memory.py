"""Memory that this process may use."""

import os
import resource
from pathlib import Path

MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""https://docs.kernel.org/admin-guide/cgroup-v2.html; "max" if there is no limit."""


def memory_bytes() -> int | None:
    """Returns the memory of the machine, or a smaller limit of the container or the process; None if unknown."""
    known: list[int] = []
    try:
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        known.append(int(MEMORY_LIMIT.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        pass  # the system lacks one of them, or the limit is "max"
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        known.append(address_space)
    return min(known, default=None)
