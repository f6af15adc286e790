"""Statistics of wrappers go with a run: from its actors to its checkpoint, an evaluation and a resumed run."""

from pathlib import Path

import pytest

from harness.processes.training_process import run, training_command
from kubebeast_learner.config import EvalConfig
from kubebeast_learner.play.evaluate import evaluate
from kubebeast_learner.play.export_description import describe
from kubebeast_learner.play.trained_model import load_trained

MODULE = """
import gymnasium
import numpy as np
class Sizes(gymnasium.Env):
    \"\"\"An episode's observation is 995 or 1005, which its action should tell.\"\"\"
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps, self.is_large = 0, bool(self.np_random.integers(2))
        return self.observe(), {}
    def step(self, action):
        self.num_steps += 1
        return self.observe(), 1.0 if int(action) == int(self.is_large) else -1.0, False, self.num_steps >= 10, {}
    def observe(self):
        return np.array([1005.0 if self.is_large else 995.0], np.float32)
gymnasium.register("LargeOrSmall-v0", entry_point=Sizes)
"""
WRAPPER = "gymnasium.wrappers:NormalizeObservation"
NUM_STEPS = 20_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the module sizes_env."""
    (tmp_path / "sizes_env.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flags(num_steps: int) -> list[str]:
    learning = ["--model=mlp", "--hidden-sizes", "16", "--learning-rate=0.01", "--unroll-length=5", "--batch-size=8"]
    return ["--env=sizes_env:LargeOrSmall-v0", f"--wrappers={WRAPPER}", f"--total-steps={num_steps}", *learning]


def test_mono_saves_them_and_an_evaluation_plays_by_them(folder: Path) -> None:
    result = run(training_command("mono", folder, *flags(NUM_STEPS)))
    assert result.returncode == 0, result.stdout + result.stderr

    trained = load_trained(EvalConfig(savedir=str(folder), xpid="run"))
    (statistics,) = trained.env_statistics
    assert (statistics.wrapper, statistics.name) == ("NormalizeObservation", "obs_rms")
    assert statistics.mean[0] == pytest.approx(1000, abs=0.5)
    assert statistics.count > 0.9 * NUM_STEPS
    weights = load_trained(EvalConfig(checkpoint=folder / "run" / "weights.safetensors"))
    assert weights.env_statistics[0].to_plain() == statistics.to_plain()
    assert "wrappers had counted this" in describe(trained)["environment"]["notes"][-1]

    evaluation = evaluate(EvalConfig(savedir=str(folder), xpid="run", episodes=20))
    assert (evaluation.mean_return, evaluation.notes) == (10.0, []), "every episode's first action is right already"

    resumed = run(training_command("mono", folder, *flags(NUM_STEPS + 2000)))
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    (more,) = load_trained(EvalConfig(savedir=str(folder), xpid="run")).env_statistics
    assert more.count > statistics.count + 1000


def test_train_says_that_it_saves_none_and_so_does_an_evaluation(folder: Path) -> None:
    result = run(training_command("train", folder, *flags(400)))
    assert result.returncode == 0, result.stdout + result.stderr
    assert (
        f"wrappers = {WRAPPER}: each environment of a fleet keeps statistics of its own"
        in result.stderr + result.stdout
    )

    evaluation = evaluate(EvalConfig(savedir=str(folder), xpid="run", episodes=1))
    assert len(evaluation.notes) == 1 and "NormalizeObservation: statistics of each environment" in evaluation.notes[0]
    trained = load_trained(EvalConfig(savedir=str(folder), xpid="run"))
    assert "were not saved" in describe(trained)["environment"]["notes"][-1]
