"""Pages that learner and env-servers serve, read no further than is sensible."""

from kubebeast_learner.fleet.errors import FleetError

MAX_PAGE_BYTES = 8 << 20
"""A page that is larger is refused: ten thousand streams have a third of it."""


def page_text(body: bytes, name: str) -> str:
    """FleetError for a page that is too large."""
    if len(body) > MAX_PAGE_BYTES:
        raise FleetError(f"{name} is larger than {MAX_PAGE_BYTES >> 20} MiB")
    return body.decode("utf-8", errors="replace")
