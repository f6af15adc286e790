"""The examples train, and their runs can be evaluated, as their first lines show."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.training_process import TIMEOUT_S, command, environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def kubebeast(folder: Path, savedir: Path, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in `folder`, so that modules there are found."""
    words = command(name, *flags, f"--savedir={savedir}", "--xpid=run")
    return warm_start.run(words, cwd=folder, env=environment(), timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    "choice", ["--model=my_net:MyNet", "--loss=my_loss:my_loss", "--encoder=.=my_encoder:FourierFeatures"]
)
def test_an_example_trains_and_is_evaluated(tmp_path: Path, choice: str) -> None:
    trained = kubebeast(
        EXAMPLES, tmp_path, "mono", "--env=CartPole-v1", choice, "--total-steps=2000", "--progress=none"
    )
    assert trained.returncode == 0, trained.stderr
    evaluated = kubebeast(EXAMPLES, tmp_path, "eval", "--episodes=2", "--json")
    assert evaluated.returncode == 0, evaluated.stderr
    assert len(json.loads(evaluated.stdout)["episodes"]) == 2


@pytest.mark.parametrize("choice", ["--model=my_net:MyNet", "--loss=my_loss:my_loss"])
def test_an_example_trains_with_the_recipe_for_its_environment(tmp_path: Path, choice: str) -> None:
    flags = ["--env=CartPole-v1", "--recipe=auto", "--total-steps=2100", "--progress=none"]
    trained = kubebeast(EXAMPLES, tmp_path, "mono", *flags, choice)

    assert trained.returncode == 0, trained.stderr
    assert "settings of recipe vector, as the observation has no image" in trained.stderr


def test_a_tracker_of_ones_own_receives_the_run(tmp_path: Path) -> None:
    flags = ["--env=CartPole-v1", "--total-steps=2000", "--log-interval-s=0.2", "--progress=none"]
    options = '{"my_tracker:JsonLines": {"every": 1}}'
    tracking = ["--tracker=my_tracker:JsonLines", f"--tracker-options={options}"]
    trained = kubebeast(EXAMPLES, tmp_path, "mono", *flags, *tracking)
    assert trained.returncode == 0, trained.stderr
    first, *rows, last = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert first["run"] == "run" and last == {"successful": True}
    assert rows[-1]["step"] >= 2000 and rows[-1]["sps"] > 0


def test_a_callback_of_ones_own_sees_checkpoints_and_ends_the_run(tmp_path: Path) -> None:
    flags = ["--env=CartPole-v1", "--recipe=torchbeast", "--total-steps=100000000", "--progress=none"]
    options = '{"my_callback:Patience": {"episodes": 5}}'
    calling = ["--callback=my_callback:Patience", f"--callback-options={options}"]
    trained = kubebeast(EXAMPLES, tmp_path, "mono", *flags, *calling)
    assert trained.returncode == 0, trained.stderr
    assert "the run ends: on_episode of my_callback:Patience has returned a true value" in trained.stderr
    (step, place) = (tmp_path / "run" / "checkpoints.txt").read_text().split()
    assert Path(place) == tmp_path / "run" / f"checkpoint-{int(step):012d}.pt"
    assert Path(place).exists()


def test_an_environment_of_ones_own_trains_and_is_evaluated_with_its_arguments(tmp_path: Path) -> None:
    flags = ["--env=maze_env:Maze-v0", '--env-kwargs={"size": 5}', "--recipe=auto", "--total-steps=500"]
    trained = kubebeast(EXAMPLES, tmp_path, "mono", *flags, "--progress=none")
    assert trained.returncode == 0, trained.stderr
    evaluated = kubebeast(EXAMPLES, tmp_path, "eval", "--episodes=1", "--json")
    assert evaluated.returncode == 0, evaluated.stderr


def test_an_environment_with_levels_trains_with_a_curriculum_of_ones_own(tmp_path: Path) -> None:
    flags = ["--env=rooms_env:Rooms-v0", "--recipe=auto", "--total-steps=2000", "--progress=none"]
    own = ["--curriculum=my_curriculum:Stairs", '--curriculum-options={"most": 2}']
    trained = kubebeast(EXAMPLES, tmp_path, "mono", *flags, *own)
    assert trained.returncode == 0, trained.stderr
    evaluated = kubebeast(EXAMPLES, tmp_path, "eval", "--episodes=1", "--json")
    assert evaluated.returncode == 0, evaluated.stderr


def test_the_algorithm_in_one_file_updates_its_model_until_its_steps_are_done(tmp_path: Path) -> None:
    process = subprocess.run(
        [
            sys.executable,
            EXAMPLES / "impala_loop.py",
            "--total-steps=1500",
            "--num-actor-processes=1",
            "--updates-per-line=10",
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert process.returncode == 0, process.stderr
    line = r"step ([\d,]+)  [\d,]+ steps/s  mean return (\S+)  loss (\S+)"
    steps, returns, losses = zip(*re.findall(line, process.stdout), strict=True)
    assert len(steps) >= 2 and int(steps[-1].replace(",", "")) >= 1500
    assert all(math.isfinite(float(loss)) for loss in losses) and -1 <= float(returns[-1]) <= 1


def test_the_algorithm_fits_on_a_few_screens() -> None:
    assert len((EXAMPLES / "impala_loop.py").read_text().splitlines()) <= 150


def test_a_shape_error_is_explained_before_training_starts(tmp_path: Path) -> None:
    (tmp_path / "bad_net.py").write_text(
        (EXAMPLES / "my_net.py").read_text().replace("self.baseline(output).squeeze(-1)", "self.baseline(output)")
    )
    process = kubebeast(tmp_path, tmp_path, "mono", "--env=CartPole-v1", "--model=bad_net:MyNet")
    assert process.returncode == 2
    assert "baseline must be float32 [3, 2], it is float32 [3, 2, 1]" in process.stderr
