"""The limit of open files and connections of a process: RLIMIT_NOFILE (getrlimit(2))."""

import contextlib
import logging
import resource
import sys

logger = logging.getLogger(__name__)

RESERVED = 256
"""Open files that a process needs in addition to its streams."""


def raise_limit() -> int:
    """Raises the soft limit to the hard limit; returns the number of files that may be open.

    Soft limits are often 1024, for programs that use select().
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS has a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def make_room(setting: str, count: int, files_each: int = 1) -> None:
    """Raises the soft limit. Logs a warning if it is too low for `setting` = `count` with `files_each` files each."""
    limit, needed = raise_limit(), count * files_each + RESERVED
    if limit >= needed:
        return
    logger.warning(
        "%s = %d needs %d open files, and this process may have %d: raise its hard limit (RLIMIT_NOFILE, ulimit -Hn), "
        "or lower %s to %d",
        *(setting, count, needed, limit, setting, max(0, limit - RESERVED) // files_each),
    )
