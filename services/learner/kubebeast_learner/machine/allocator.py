"""Settings of the C library's allocator for the large tensors that every update allocates and frees."""

import ctypes
import sys

# mallopt(3)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MMAP_THRESHOLDS_BYTES = (1 << 30, 32 << 20)
"""The largest first; glibc before 2.35 rejects more than 32 MiB."""
_TRIM_THRESHOLD_BYTES = 512 << 20


def keep_freed_memory() -> None:
    """Makes glibc keep freed blocks instead of returning their pages; no effect elsewhere.

    Otherwise the kernel provides activations of every update page by page, zeroed, and takes them back. Blocks of more
    than the largest threshold that this glibc accepts are still returned, as is free memory at the end of the heap
    beyond _TRIM_THRESHOLD_BYTES.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        any(mallopt(_M_MMAP_THRESHOLD, threshold) for threshold in _MMAP_THRESHOLDS_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
