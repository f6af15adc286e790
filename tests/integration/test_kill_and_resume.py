"""A learner that is killed at any moment resumes from a whole checkpoint, no older than the newest it announced."""

from pathlib import Path

import pytest

from harness.processes.killed_training import kill_and_resume


@pytest.mark.parametrize("command", ["train", "mono"])
def test_a_killed_run_goes_on_from_its_newest_checkpoint(tmp_path: Path, command: str) -> None:
    kills = kill_and_resume(command, kills=2, seed=7, savedir=tmp_path)
    assert len(kills) == 2
    for kill in kills:
        assert kill.resumed_step >= kill.announced_step > 0
    steps = [kill.resumed_step for kill in kills]
    assert steps == sorted(set(steps)), "every life trains on"
