"""The tasks that streams play: how each of the run's is made, and others, which are said once.

A run without task_shares has one; streams of others are let in where their shapes fit.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kubebeast_common.env_config import EnvConfig
from kubebeast_common.pool.stream_log import MAX_TEXT, StreamEvent
from kubebeast_common.text import printable
from kubebeast_learner.actors.env_spec import EnvSpec, describe

logger = logging.getLogger(__name__)

MAX_TASKS = 100
"""Other tasks that are logged; a peer can make up any number."""


class StreamTasks:
    """Compares what joins with the environment of the run. For one thread."""

    def __init__(self, spec: EnvSpec, tasks: Sequence[str] = ()) -> None:
        """spec: of the run. tasks: those in task_shares."""
        self._spec = spec
        self._tasks = tasks
        self.configs: dict[str, EnvConfig] = {}
        """Of each task in task_shares, as its first stream told it."""
        self._told: set[tuple[str, str]] = set()

    def compare(self, events: Iterable[StreamEvent]) -> None:
        """Warns of every task that differs from the run's, the first time that a stream joins with it."""
        for event in events:
            task = (event.env_id, event.env_config)
            if event.kind == "joined" and task not in self._told and len(self._told) < MAX_TASKS:
                self._told.add(task)
                self._compare(event)

    def _compare(self, event: StreamEvent) -> None:
        spec, config = self._spec, read_env_config(event.env_config)
        if event.env_id in self._tasks:
            expected = self.configs.get(event.env_id)
            if config is not None:
                self.configs.setdefault(event.env_id, config)
            spec = replace(spec, env_id=event.env_id, env_config=expected)
        same_config = config is None or spec.env_config is None or config == spec.env_config
        if event.env_id != spec.env_id or not same_config:
            logger.warning(
                "%s joined with another task, %s; kubebeast eval will play the run's, %s",
                event.env_server_id,
                printable(describe(event.env_id, config), MAX_TEXT),
                printable(describe(spec.env_id, spec.env_config), MAX_TEXT),
            )


def read_env_config(text: str) -> EnvConfig | None:
    """Hello.env_config as a peer sent it; None where it is empty or, with a warning, where it cannot be read."""
    if not text:
        return None
    try:
        return EnvConfig.from_json(text)
    except ValueError as error:
        logger.warning("an env-server's env_config cannot be read and is passed over: %s", error)
        return None
