"""How many files and connections a process may have open: the limit RLIMIT_NOFILE (getrlimit(2))."""

import contextlib
import logging
import resource
import sys

logger = logging.getLogger(__name__)

RESERVED = 256
"""Open files that a process needs for everything but its streams."""


def raise_limit() -> int:
    """Lifts the soft limit as far as the hard one lets it; returns the files that may be open.

    Soft limits are often 1024, for programs that use select().
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS has a lower bound of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def make_room(setting: str, count: int, files_each: int = 1) -> None:
    """Lifts the soft limit, and warns where it is too low for `count`, the value of `setting`, at `files_each` each."""
    limit, needed = raise_limit(), count * files_each + RESERVED
    if limit >= needed:
        return
    logger.warning(
        "%s = %d needs %d open files, and this process may have %d: raise its hard limit (RLIMIT_NOFILE, ulimit -Hn), "
        "or lower %s to %d",
        *(setting, count, needed, limit, setting, max(0, limit - RESERVED) // files_each),
    )
