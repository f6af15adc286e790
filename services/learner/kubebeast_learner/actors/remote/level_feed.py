"""Levels of a curriculum for the env-servers of a pool."""

import logging
from collections.abc import Iterable

from kubebeast_common.pool.options_feed import OptionsFeed
from kubebeast_common.text import printable
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_native import OPTIONS_MINOR, ActorPool, StreamEvent

logger = logging.getLogger(__name__)

MAX_NAMED = 100
"""Most env-servers without levels that are logged."""


class LevelFeed(OptionsFeed):
    """The thread that chooses levels, and the log of env-servers that take none."""

    def __init__(self, pool: ActorPool, levels: Levels) -> None:
        super().__init__(pool, levels.draw)
        self._named: set[str] = set()

    def start(self) -> None:
        """Fills the queue of the pool, which is not open yet, and starts. Raises CurriculumError."""
        self.fill()
        super().start()

    def look_at(self, events: Iterable[StreamEvent]) -> None:
        """Logs, once each, the env-servers that have joined with an older version, which knows no options."""
        for event in events:
            is_older = event.kind == "joined" and event.protocol_minor < OPTIONS_MINOR
            if is_older and event.env_server_id not in self._named and len(self._named) < MAX_NAMED:
                self._named.add(event.env_server_id)
                logger.warning(
                    "the env-server %s has protocol version 1.%d, which knows no options of episodes: its episodes "
                    "have no level, which takes 1.%d",
                    *(printable(event.env_server_id, 100), event.protocol_minor, OPTIONS_MINOR),
                )
