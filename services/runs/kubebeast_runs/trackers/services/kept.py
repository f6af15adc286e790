"""The name of a run in a service, kept in the run's folder for its later processes."""

import json
from pathlib import Path

from kubebeast_common.atomic_file import write_atomically


class KeptName:
    """The file tracker-<service>.json: texts that name the run of the service."""

    def __init__(self, folder: Path, service: str) -> None:
        self._path = folder / f"tracker-{service}.json"

    def read(self) -> dict[str, str]:
        """Returns an empty one for a new run. Raises OSError, or ValueError if the file is damaged."""
        if not self._path.exists():
            return {}
        kept = json.loads(self._path.read_text(encoding="utf-8"))
        if not isinstance(kept, dict):
            raise ValueError(f"{self._path} is no JSON object: delete it to begin another run of the service")
        return kept

    def write(self, **texts: str) -> None:
        """Replaces the file. Raises OSError."""
        write_atomically(self._path, (json.dumps(texts, indent=4) + "\n").encode())
