"""Loss of a training that is killed with SIGKILL at random moments and resumed repeatedly.

    python -m benchmarks.kill_resume --command mono --kills 20

Every round resumes the same run, waits until it has trained and saved a checkpoint, waits a random time of up to two
checkpoint intervals and kills the learner with SIGKILL. The next round shows the step at which it resumed: a complete
checkpoint, not older than the newest one that the killed learner had announced.
"""

import dataclasses
import tempfile
from pathlib import Path
from typing import Literal

import tyro

from benchmarks import report
from harness.processes.killed_training import INTERVAL_S, kill_and_resume


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    command: Literal["train", "mono"] = "mono"
    """Command of the training."""
    kills: int = 20
    """Number of rounds."""
    seed: int = 1
    """Seed of the random moments."""


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        kills = kill_and_resume(settings.command, settings.kills, settings.seed, Path(folder))
    report.print_table(f"kubebeast {settings.command}, killed {len(kills)} times", kills)
    broken = sum(kill.resumed_step < kill.announced_step for kill in kills)
    print(f"oldest checkpoint resumed: {max(kill.lost_s for kill in kills):.2f} s (interval {INTERVAL_S} s)")
    print(f"resumed behind an announced checkpoint: {broken}")
    print("Results:", report.write_json(f"kill_resume_{settings.command}", settings, {"kills": kills}))


if __name__ == "__main__":
    main()
