"""A tracker of your own: it receives the numbers of a run while it trains.

kubebeast mono --env CartPole-v1 --tracker my_tracker:JsonLines
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class JsonLines:
    """Writes the numbers of each row as a line of JSON, as log shippers read them."""

    def __init__(self, folder: Path, every: int = 1) -> None:
        self._file = open(folder / "metrics.jsonl", "a")  # noqa: SIM115 - closed by `end`
        self._every, self._num_rows = every, 0

    def begin(self, meta: Mapping[str, Any]) -> None:
        self._write({"run": meta["xpid"], "learning_rate": meta["args"]["learning_rate"]})

    def log(self, step: int, values: Mapping[str, int | float | str | None]) -> None:
        self._num_rows += 1
        if self._num_rows % self._every == 0:
            self._write({"step": step, "return": values["mean_episode_return"], "sps": values["sps"]})

    def end(self, *, successful: bool) -> None:
        self._write({"successful": successful})
        self._file.close()

    def _write(self, numbers: Mapping[str, Any]) -> None:
        print(json.dumps(numbers), file=self._file, flush=True)
