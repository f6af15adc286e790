"""Log of every rank but the first, which alone writes the files of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from kubebeast_runs.files.table_file import Value
from kubebeast_runs.files.write_failures import WriteFailures


class RankLog:
    """The counterpart of RunLog on the other ranks: it writes no files, and messages go to standard error only."""

    def __init__(self, savedir: Path, xpid: str) -> None:
        self.folder = savedir / xpid
        """Folder of the run; it may not exist if this rank is on another machine."""
        self.successful = False
        self.num_crashes: int | None = None
        """Always None, as only the first rank counts them."""
        self.failures = WriteFailures(self.folder)
        """Always empty, as nothing is written."""

    def record(self, settings: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> None: ...

    def note_environment(self, env_id: str, env_config: Mapping[str, Any] | None) -> None: ...

    def log(self, values: Mapping[str, Value]) -> None: ...

    def note_checkpoint(self, step: int) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...
