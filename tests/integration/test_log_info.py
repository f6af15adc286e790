"""Exact returns, and numbers in the info of episodes, reach the logs of a run from every kind of actors."""

import json
import math
from pathlib import Path

import pytest

from harness.processes.training_process import command, rows, run, snapshots, training_command
from kubebeast_runs.log_table import read_log
from tests.integration.informed_env import LARGE_RETURN

KEYS = ["success", "step", "found/wood", "sucess"]


@pytest.mark.parametrize("name", ["train", "mono"])
def test_a_run_logs_and_evaluates_exact_returns_and_numbers_of_the_info(name: str, tmp_path: Path) -> None:
    env = "--env=tests.integration.informed_env:Informed-v0"

    result = run(training_command(name, tmp_path, env, "--total-steps=4000", "--log-info", *KEYS))

    assert result.returncode == 0, result.stdout + result.stderr
    newest = rows(tmp_path / "run")[-1]
    assert float(newest["info/success"]) == pytest.approx(0.5, abs=0.05)
    assert float(newest["info/step"]) == 4.0
    assert float(newest["mean_episode_return"]) == LARGE_RETURN
    assert newest["info/sucess"] in ("", "None")
    assert snapshots(result.stdout)[-1]["info/found/wood"] == 0.5
    table = read_log(tmp_path / "run")
    assert table.newest("info/success") == pytest.approx(0.5, abs=0.05)
    assert math.isnan(table.columns["info/sucess"][-1])
    played = run(command("eval", f"--savedir={tmp_path}", "--xpid=run", "--episodes=2", "--json"))
    assert json.loads(played.stdout)["mean_info"] == {"success": 0.0, "step": 4.0, "found/wood": 0.5, "sucess": None}
    assert "log_info = 'sucess': no number in the info of an episode's last step" in reported(result.stderr, tmp_path)


def reported(output: str, savedir: Path) -> str:
    """Returns the output of a command and of its env-servers."""
    return output + "".join(path.read_text() for path in (savedir / "run").glob("*.log"))
