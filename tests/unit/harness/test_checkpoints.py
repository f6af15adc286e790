"""A checkpoint is healthy if it can be read and holds finite numbers only."""

from pathlib import Path

import torch

from harness.checkpoints import examine


def save(folder: Path, step: int, *weights: float) -> None:
    state = {"step": step, "learner": {"model": {"weight": torch.tensor(weights)}, "groups": [{"lr": 1e-3}]}}
    torch.save(state, folder / f"checkpoint-{step:012d}.pt")


def test_checkpoints_are_told_apart_by_what_is_in_them(tmp_path: Path) -> None:
    save(tmp_path, 10, 1.0, 2.0)
    save(tmp_path, 20, 1.0, float("nan"))
    save(tmp_path, 30, 3e38)
    (tmp_path / "checkpoint-000000000040.pt").write_bytes(b"torn")
    found = examine(tmp_path)
    assert found.healthy == [10, 30]
    assert found.unhealthy == ["checkpoint-000000000020.pt", "checkpoint-000000000040.pt"]
