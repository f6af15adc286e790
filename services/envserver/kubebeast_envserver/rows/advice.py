"""Advice for users on environments that work: warnings, or lines of a command that collects them."""

import contextlib
import logging
from collections.abc import Iterator

logger = logging.getLogger(__name__)


def advise(text: str) -> None:
    """Logs a warning, or adds to the texts that are being `collected`."""
    logger.warning("%s", text)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if (text := record.getMessage()) not in self.texts:
            self.texts.append(text)


@contextlib.contextmanager
def collected() -> Iterator[list[str]]:
    """Collects advice in place of warnings, each text once. For one thread at a time."""
    collector, propagated = _Collector(), logger.propagate
    logger.addHandler(collector)
    logger.propagate = False
    try:
        yield collector.texts
    finally:
        logger.propagate = propagated
        logger.removeHandler(collector)
