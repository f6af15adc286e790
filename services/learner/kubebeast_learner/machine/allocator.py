"""Settings of the C library's allocator for the large tensors that every update allocates and frees."""

import ctypes
import sys

# mallopt(3); the largest M_MMAP_THRESHOLD that glibc accepts is 32 MiB.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MMAP_THRESHOLD_BYTES = 32 << 20
_TRIM_THRESHOLD_BYTES = 512 << 20


def keep_freed_memory() -> None:
    """Makes glibc keep freed blocks below 32 MiB instead of returning their pages; no effect elsewhere.

    Otherwise the kernel provides activations of every update page by page, zeroed, and takes them back.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
