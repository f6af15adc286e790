"""A log that LogTable reads."""

import time
from pathlib import Path


class Log:
    """A log of the returns of episodes, in the order in which they end."""

    def __init__(self, folder: Path) -> None:
        """Creates folder/logs.csv."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "logs.csv"
        self._path.write_text("# step,elapsed_s,episode_returns\n")
        self._returns: list[float] = []
        self._began = time.monotonic()

    def add(self, episode_return: float) -> None:
        self._returns.append(episode_return)

    def write(self, step: int) -> None:
        """Writes a row with the episodes since the last one."""
        listed = ", ".join(map(str, self._returns))
        with open(self._path, "a") as file:
            file.write(f'{step},{time.monotonic() - self._began:.3f},"({listed})"\n')
        self._returns = []
