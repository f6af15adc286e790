"""Self-play with real processes: a league that grows, goes on after a resume, and is played against by eval."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.processes.training_process import command, rows, run, training_command

TIC_TAC_TOE = "--env=pettingzoo/classic/tictactoe_v3"
FLAGS = ("--num-actors=16", "--num-servers=2", "--opponents=prioritized", "--league-interval=500")


def evaluate(savedir: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run(command("eval", f"--savedir={savedir}", "--xpid=run", "--json", "--mode=sample", *flags))


def test_a_league_grows_goes_on_after_a_resume_and_can_be_played_against(tmp_path: Path) -> None:
    first = run(training_command("train", tmp_path, TIC_TAC_TOE, *FLAGS, "--total-steps=1500"))
    second = run(training_command("train", tmp_path, TIC_TAC_TOE, *FLAGS, "--total-steps=3000"))

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    logged = rows(tmp_path / "run")
    sizes = [float(row["league/versions"]) for row in logged]
    assert sizes == sorted(sizes), "the second process goes on with the versions of the first"
    assert sizes[-1] >= 4
    assert all(float(row["league/elo"]) > 0 and 0 <= float(row["league/score"]) <= 1 for row in logged)

    result = evaluate(tmp_path, "--against=league", "--episodes=8")
    assert result.returncode == 0, result.stderr
    played = json.loads(result.stdout)["episodes"]
    by_opponent = {episode["opponent"] for episode in played}
    assert len(by_opponent) == sizes[-1]
    assert len(played) == 8 * len(by_opponent)
    assert {episode["episode_return"] for episode in played} <= {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("opponent", ["random", "examples.perfect_tictactoe:Perfect"])
def test_a_checkpoint_plays_against_other_policies(tmp_path: Path, opponent: str) -> None:
    trained = run(training_command("train", tmp_path, TIC_TAC_TOE, "--num-actors=16", "--total-steps=500"))
    assert trained.returncode == 0, trained.stderr

    result = evaluate(tmp_path, f"--against={opponent}", "--episodes=6")

    assert result.returncode == 0, result.stderr
    played = json.loads(result.stdout)["episodes"]
    assert [episode["opponent"] for episode in played] == [opponent] * 6
    if opponent != "random":
        assert all(episode["episode_return"] <= 0 for episode in played), "nobody wins against perfect play"


@pytest.mark.parametrize(
    ("name", "flags", "reason"),
    [
        ("train", ("--env=CartPole-v1", "--opponents=newest"), "environments of several agents"),
        ("mono", ("--env=CartPole-v1", "--opponents=newest"), "kubebeast mono plays all agents with the policy"),
        ("mono", (TIC_TAC_TOE,), "agents take turns, which kubebeast mono does not play"),
        ("train", (TIC_TAC_TOE, "--opponents=newest", "--lag=1"), "opponents = 'newest'"),
        ("train", (TIC_TAC_TOE, "--lag=1"), "the learner plays no agents that take turns: it has a lag"),
    ],
)
def test_what_self_play_cannot_play_ends_in_words(
    name: str, flags: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    result = run(training_command(name, tmp_path, *flags, "--total-steps=1000"))

    assert result.returncode != 0
    logs = result.stdout + result.stderr + "".join(path.read_text() for path in (tmp_path / "run").glob("*.log"))
    assert reason in logs
