"""A policy that masks actions learns, plays and is exported; one that leaves none ends with an explanation."""

import json
import math
from pathlib import Path

import pytest
import torch

from harness.processes.training_process import command, rows, run
from tests.integration.masked_game import LENGTH, NUM_ACTIONS
from tests.integration.stepwise_training import steps_until

GAME, MODELS = "tests.integration.masked_game", "tests.integration.masking_models"
PLACES = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"}


def train(name: str, game: str, model: str, savedir: Path) -> list[str]:
    return command(
        name,
        f"--env={GAME}:{game}",
        f"--model={model}",
        "--num-actors=4",
        "--unroll-length=7",
        "--batch-size=4",
        "--total-steps=2000",
        "--learning-rate=0.02",
        f"--savedir={savedir}",
        "--xpid=run",
        {"train": "--num-servers=1", "mono": "--num-actor-processes=1"}[name],
    )


@pytest.mark.parametrize(("game", "model"), [("Strict-v0", f"{MODELS}:Net"), ("Masked-v0", "mlp")])
def test_a_policy_that_masks_actions_learns(game: str, model: str) -> None:
    settings = {"model": model, "unroll_length": 7, "batch_size": 4, "total_steps": 20_000, "learning_rate": 0.01}

    steps = steps_until(0.9 * LENGTH, f"{GAME}:{game}", settings)

    assert steps is not None, "random play returns 0.57 * LENGTH"


@pytest.mark.parametrize(
    ("name", "game", "model"), [("train", "Strict-v0", f"{MODELS}:Net"), ("mono", "Masked-v0", "mlp")]
)
def test_a_policy_that_masks_actions_never_takes_one(name: str, game: str, model: str, tmp_path: Path) -> None:
    process = run(train(name, game, model, tmp_path), **PLACES)
    assert process.returncode == 0, process.stderr
    last = rows(tmp_path / "run")[-1]
    assert 0.0 < float(last["entropy"]) < math.log(NUM_ACTIONS)
    assert (int(last["num_skipped_updates"]), last["actor_restarts"]) == (0, "0")
    assert last["env_failures"] in ("0", ""), "an illegal action raises"

    trained = [f"--savedir={tmp_path}", "--xpid=run"]
    for mode in ("greedy", "sample"):
        played = run(command("eval", *trained, "--episodes=3", f"--mode={mode}", "--json"), **PLACES)
        assert played.returncode == 0, played.stderr
        assert [episode["length"] for episode in json.loads(played.stdout)["episodes"]] == [LENGTH] * 3
    for format, suffix in (("export", "pt2"), ("torchscript", "pt")):
        out = tmp_path / f"model.{suffix}"
        exported = run(command("export", *trained, f"--format={format}", f"--out={out}"), **PLACES)
        assert exported.returncode == 0, exported.stderr
    actor = torch.export.load(tmp_path / "model.pt2").module()
    hint, legal = torch.eye(4)[:1], torch.tensor([[1, 0, 0, 1]])
    observation = (hint, legal.to(torch.int8)) if game == "Strict-v0" else (legal.bool(), hint)
    policy_logits, _ = actor(*observation, torch.zeros(1), torch.zeros(1, dtype=torch.int64), torch.zeros(1) == 1)
    assert policy_logits.isneginf().tolist() == [[False, True, True, False]]


def test_a_policy_that_leaves_no_action_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    process = run(train("mono", "Lenient-v0", f"{MODELS}:MasksAll", tmp_path), **PLACES)
    assert process.returncode == 1
    assert "actions are masked by -inf" in process.stderr and "Traceback" not in process.stderr
