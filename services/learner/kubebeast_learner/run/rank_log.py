"""The log of a rank that is not the first, which writes everything that a run leaves on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from kubebeast_learner.run.table_file import Value


class RankLog:
    """What RunLog is to the first rank, without a file: this rank's messages go to standard error alone."""

    def __init__(self, savedir: Path, xpid: str) -> None:
        self.folder = savedir / xpid
        """Of the run; it may not exist where this rank is on another machine."""
        self.successful = False

    def record(self, settings: Mapping[str, Any]) -> None: ...

    def note_environment(self, env_id: str, env_config: Mapping[str, Any] | None) -> None: ...

    def log(self, values: Mapping[str, Value]) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...
