"""`kubebeast train`, `learner` and `mono` share the loop, the losses and all other code that learns."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

import kubebeast_learner
from kubebeast_learner.commands import mono, train
from kubebeast_learner.config import LearnerConfig, MonoConfig, TrainConfig, TrainingConfig
from kubebeast_learner.training.process import EndedError, TrainingProcess

PACKAGE = Path(kubebeast_learner.__file__).parent
LEARNING = {
    "algorithm/losses.py",
    "algorithm/vtrace.py",
    "algorithm/learner.py",
    "algorithm/optimizers.py",
    "algorithm/schedules.py",
    "training/loop.py",
}


def public_definitions(path: Path) -> Iterator[str]:
    """Yields the names of the functions and classes at the top of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_what_learns_is_written_once() -> None:
    paths = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    assert paths.keys() >= LEARNING
    everywhere = Counter(name for path in paths.values() for name in public_definitions(path))
    names = [name for file in LEARNING for name in public_definitions(paths[file])]
    assert {"impala_loss", "from_logits", "from_importance_weights", "Learner", "Training"} <= set(names)
    assert [name for name in names if everywhere[name] != 1] == []


@pytest.mark.parametrize(
    ("command", "config"),
    [
        (train.train, TrainConfig()),
        (train.learn, LearnerConfig()),
        (mono.train, MonoConfig()),
    ],
)
def test_every_way_of_training_runs_the_same_process(
    command: Callable[[Any], int], config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[TrainingConfig] = []

    def open_run(process: TrainingProcess[TrainingConfig], **_: Any) -> NoReturn:
        started.append(process.config)
        raise EndedError(7)

    for module in (mono, train):
        monkeypatch.setattr(module, "open_run", open_run)
    named = replace(config, run=replace(config.run, xpid="run", savedir=str(tmp_path)))
    assert command(named) == 7
    assert started == [named]
