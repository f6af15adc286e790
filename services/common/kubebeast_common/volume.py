"""Errors of a volume that is full, over a quota or a limit, read-only or gone."""

import errno

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE})


def is_full(error: OSError) -> bool:
    """Returns True if the volume caused the error, so that the same write may succeed later."""
    return error.errno in FULL
