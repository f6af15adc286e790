"""The Python code in docs/runs.md works on the files of a run."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kubebeast_learner.config import ExportConfig, ModelConfig
from kubebeast_learner.play.export import run
from tests.unit.learner.play.playing import STEP, write_run
from tests.unit.repository.documents import ROOT, blocks

CATCH = "kubebeast_envserver.catch:Catch-v0"


def example(about: str) -> str:
    """Returns the guide's block of Python with these words."""
    texts = [block.text for block in blocks(ROOT / "docs" / "runs.md") if block.language == "python"]
    (text,) = [text for text in texts if about in text]
    return text


def test_a_checkpoint_and_weights_are_read_without_running_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkpoint,) = write_run(tmp_path / "catch", CATCH, ModelConfig(model="mlp")).glob("checkpoint-*.pt")
    monkeypatch.chdir(checkpoint.parent)
    names: dict[str, Any] = {}

    exec(example("load_file").replace("checkpoint-000000200010.pt", checkpoint.name), names)

    assert names["state"]["step"] == STEP
    assert names["weights"].keys() == names["state"]["learner"]["model"].keys()


def test_an_exported_actor_takes_a_step_of_any_number_of_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "catch", CATCH, ModelConfig(model="mlp"))
    assert run(ExportConfig(savedir=str(tmp_path), xpid="catch", out=tmp_path / "pong.pt2")) == 0
    monkeypatch.chdir(tmp_path)
    B = 3
    names: dict[str, Any] = {
        "torch": torch,
        "frames": torch.zeros(B, 10, 5),
        "reward": torch.zeros(B),
        "last_action": torch.zeros(B, dtype=torch.int64),
        "is_first": torch.ones(B, dtype=torch.bool),
        "core_state": (),
    }

    exec(example("torch.jit.load"), names)

    assert names["policy_logits"].shape == (B, 3)
    assert names["baseline"].shape == (B,)
