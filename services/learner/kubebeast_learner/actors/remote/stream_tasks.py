"""The tasks that streams play: settings of each task of the run, and one warning for each other task.

A run without task_shares has one task; streams of other tasks are admitted if their shapes fit.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kubebeast_common.ids.env_id import is_same_env
from kubebeast_common.pool.stream_log import MAX_TEXT, StreamEvent
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec, describe
from kubebeast_common.text import printable

logger = logging.getLogger(__name__)

MAX_TASKS = 100
"""Most tasks that are compared; a peer can make up any number."""


class StreamTasks:
    """A comparison of the streams that join with the environment of the run. Not thread-safe."""

    def __init__(self, spec: EnvSpec, tasks: Sequence[str] = ()) -> None:
        """spec: environment of the run. tasks: those in task_shares."""
        self._spec = spec
        self._tasks = tasks
        self.configs: dict[str, EnvConfig] = {}
        """Settings of each task in task_shares, as its first stream sent them."""
        self._told: set[tuple[str, str]] = set()

    def compare(self, events: Iterable[StreamEvent]) -> None:
        """Warns of every task that differs from the run's, once, when a stream joins with it."""
        for event in events:
            task = (event.env_id, event.env_config)
            if event.kind == "joined" and task not in self._told and len(self._told) < MAX_TASKS:
                self._told.add(task)
                self._compare(event)

    def _compare(self, event: StreamEvent) -> None:
        spec, config = self._spec, read_env_config(event.env_config)
        task = next((task for task in self._tasks if is_same_env(task, event.env_id)), None)
        if task is not None:
            expected = self.configs.get(task)
            if config is not None:
                self.configs.setdefault(task, config)
            spec = replace(spec, env_id=task, env_config=expected)
        same_config = config is None or spec.env_config is None or config == spec.env_config
        if not is_same_env(event.env_id, spec.env_id) or not same_config:
            logger.warning(
                "%s joined with another task, %s; kubebeast eval will play the run's, %s",
                event.env_server_id,
                printable(describe(event.env_id, config), MAX_TEXT),
                printable(describe(spec.env_id, spec.env_config), MAX_TEXT),
            )


def read_env_config(text: str) -> EnvConfig | None:
    """Parses Hello.env_config of a peer; returns None if it is empty or, with a warning, if it cannot be read."""
    if not text:
        return None
    try:
        return EnvConfig.from_json(text)
    except ValueError as error:
        logger.warning("an env-server's env_config cannot be read and is passed over: %s", error)
        return None
