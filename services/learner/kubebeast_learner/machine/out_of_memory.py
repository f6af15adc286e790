"""Failed allocations, and the settings that determine the required memory."""

import contextlib
from collections.abc import Iterator

import torch

_TEXTS = ("can't allocate memory", "not enough memory", "out of memory")
"""Texts in RuntimeErrors of torch's CPU allocator, of CUDA's libraries and of NCCL."""


class NotEnoughMemoryError(RuntimeError):
    """Lack of memory on this machine or a GPU; the message names the settings to lower."""


@contextlib.contextmanager
def naming_what_to_lower(what: str, *settings: str) -> Iterator[None]:
    """Context of `what`, with memory that `settings` determine: failed allocations become NotEnoughMemoryError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise NotEnoughMemoryError(f"out of memory in {what}: lower {' or '.join(settings)}: {reason}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Returns True if an allocation has failed, on the CPU or on a GPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _TEXTS)
