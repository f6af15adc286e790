"""By default, an environment decides on the settings of its training by its spaces, whatever its name."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from harness.processes.env_server import EnvServer
from harness.processes.learner_process import LearnerProcess
from harness.processes.training_process import command, run
from kubebeast_learner.config.recipes import recipe_named

MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

gymnasium.register("{name}-v0", entry_point=CartPoleEnv, max_episode_steps=50)
"""
FLAGS = ["--recipe=auto", "--unroll-length=10", "--total-steps=600", "--compile=off", "--xpid=run", "--progress=none"]


@pytest.fixture
def env(tmp_path: Path) -> str:
    """The id of an environment that no table can know."""
    name = f"E{uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(name=name))
    return f"{name}:{name}-v0"


def settings(folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = yaml.safe_load((folder / "config.yaml").read_text())
    return loaded


def recipe_of(folder: Path) -> str:
    name: str = json.loads((folder / "meta.json").read_text())["recipe"]["name"]
    return name


def require_vector(folder: Path, **named: object) -> None:
    found = settings(folder)
    expected = {name: value for name, value in recipe_named("vector").settings.items() if name in found} | named
    assert {name: found[name] for name in expected} == expected
    assert recipe_of(folder) == "vector"


@pytest.mark.parametrize("name", ["mono", "train"])
def test_a_local_training_has_the_settings_of_its_kind_and_keeps_them(name: str, env: str, tmp_path: Path) -> None:
    words = command(name, *FLAGS, f"--env={env}", f"--savedir={tmp_path}")

    first = run(words, PYTHONPATH=str(tmp_path))
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("settings of recipe vector, as ") == 1
    require_vector(tmp_path / "run", unroll_length=10)

    resumed = run([*words, "--total-steps=1000"], PYTHONPATH=str(tmp_path))
    assert resumed.returncode == 0, resumed.stderr
    assert "settings of recipe" not in resumed.stderr and "resuming" in resumed.stderr
    assert "batch_size" not in resumed.stderr.partition("changed since the checkpoint")[2]
    require_vector(tmp_path / "run", unroll_length=10)


def test_a_run_of_less_than_one_batch_is_warned_of_with_the_batch_of_its_kind(env: str, tmp_path: Path) -> None:
    words = command("mono", *FLAGS, f"--env={env}", f"--savedir={tmp_path}", "--total-steps=100")
    done = run(words, PYTHONPATH=str(tmp_path))

    assert done.returncode == 0, done.stderr
    (warned,) = [line for line in done.stderr.splitlines() if "less than one batch" in line]
    assert "total_steps = 100" in warned and "= 160 env-steps" in warned


def test_several_learners_decide_alike(env: str, tmp_path: Path) -> None:
    words = command("train", *FLAGS, f"--env={env}", f"--savedir={tmp_path}", "--num-learners=2", "--num-servers=2")

    done = run(words, PYTHONPATH=str(tmp_path))

    assert done.returncode == 0, done.stderr
    require_vector(tmp_path / "run", unroll_length=10, num_servers=2)


def test_a_learner_decides_by_the_first_env_server_that_joins(env: str, tmp_path: Path) -> None:
    flags = [flag for flag in FLAGS if not flag.startswith(("--xpid", "--progress"))]
    with LearnerProcess(tmp_path, *flags) as learner:
        learner.wait_listening()
        with EnvServer(0, learner.address, tmp_path, env=env, variables={"PYTHONPATH": str(tmp_path)}):
            assert learner.wait() == 0, learner.log()[-2000:]

    assert learner.log().count("settings of recipe vector, as ") == 1
    require_vector(learner.run_folder, unroll_length=10)
