"""An exported actor and its description suffice to play a game in a program without KubeBeast."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from harness.processes import warm_start
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_envserver.catch import Catch
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.config import CheckpointConfig, EvalConfig, ExportConfig, ModelConfig
from kubebeast_learner.play.evaluate import evaluate
from kubebeast_learner.play.export import run
from kubebeast_learner.play.export_description import describe
from kubebeast_learner.play.trained_model import load_trained
from tests.unit.learner.play.playing import write_checkpoint, write_run

SEED, EPISODES = 5, 2
GUIDE = Path(__file__).resolve().parents[4] / "docs" / "runs.md"
LIMIT = 3000
"""Most decisions of a game. The models here lose theirs within some 200, with returns above 0."""


def play_breakout(folder: Path) -> list[tuple[float, int]]:
    """Returns return and length of EPISODES games, from `actor.pt2` and `actor.json` alone."""
    actor: Any = torch.export.load(folder / "actor.pt2").module()
    description = json.loads((folder / "actor.json").read_text())
    atari, meanings = description["environment"]["atari"], description["environment"]["action_meanings"]
    options: dict[str, Any] = {
        "num_threads": 1,
        "stack_num": 1,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "reward_clipping": False,
    }
    envs = AtariVectorEnv(atari["game"], EPISODES, **options, **atari["vector_env"])
    shapes = [
        [EPISODES if size == "B" else size for size in tensor["shape"]]
        for tensor in description["inputs"]
        if tensor["name"].startswith("core_state")
    ]

    frames, info = envs.reset(seed=SEED)
    stack = np.repeat(frames, atari["frame_stack"], axis=1)
    reward, last_action = torch.zeros(EPISODES), torch.zeros(EPISODES, dtype=torch.int64)
    core_state = [torch.zeros(shape) for shape in shapes]
    is_first, life_lost = np.ones(EPISODES, np.bool_), np.zeros(EPISODES, np.bool_)
    returns, lengths, over = np.zeros(EPISODES), np.zeros(EPISODES, np.int64), np.zeros(EPISODES, np.bool_)
    while not over.all() and lengths.max() < LIMIT:
        with torch.no_grad():
            policy_logits, _, *core_state = actor(
                torch.from_numpy(stack), reward, last_action, torch.from_numpy(is_first), *core_state
            )
        last_action = policy_logits.argmax(-1)
        actions = last_action.numpy()
        if atari["fire_after_life"]:
            actions = np.where(life_lost, meanings.index("FIRE"), actions)
        lives = info["lives"]
        frames, rewards, terminated, truncated, info = envs.step(actions)
        stack = np.concatenate([stack[:, 1:], frames], axis=1)
        life_lost = (info["lives"] < lives) & (info["lives"] > 0)
        returns += np.where(over, 0, rewards)
        lengths += ~over
        over |= terminated | truncated
        reward, is_first = torch.from_numpy(np.float32(rewards)), np.zeros(EPISODES, np.bool_)
    return list(zip(returns.tolist(), lengths.tolist(), strict=True))


@pytest.mark.parametrize("kwargs", [{}, {"frameskip": 3, "noop_max": 7, "repeat_action_probability": 0.1}])
def test_breakout_needs_only_the_file_and_its_description(tmp_path: Path, kwargs: dict[str, Any]) -> None:
    model = ModelConfig(model="mlp", hidden_sizes=(16,), use_lstm=True)
    write_run(tmp_path / "breakout", "BreakoutNoFrameskip-v4", model, kwargs=kwargs)
    assert run(ExportConfig(savedir=str(tmp_path), xpid="breakout", out=tmp_path / "actor.pt2")) == 0
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="breakout", seed=SEED, episodes=EPISODES))
    played = [(episode.episode_return, episode.length) for episode in evaluation.episodes]
    assert play_breakout(tmp_path) == played
    assert max(length for _, length in played) < LIMIT


def test_the_example_of_the_guide_plays_what_eval_plays(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n((?:(?!```).)*AtariVectorEnv.*?)```", GUIDE.read_text(), re.DOTALL)
    write_run(tmp_path / "breakout", "BreakoutNoFrameskip-v4", ModelConfig(model="mlp", hidden_sizes=(48,)))
    assert run(ExportConfig(savedir=str(tmp_path), xpid="breakout", out=tmp_path / "breakout.pt2")) == 0
    evaluation = evaluate(EvalConfig(savedir=str(tmp_path), xpid="breakout", seed=5, episodes=2))
    (tmp_path / "example.py").write_text(example)
    words = [sys.executable, "-m", "example"]
    played = warm_start.run(words, cwd=tmp_path, env=os.environ, timeout=300)  # a process without KubeBeast's modules
    assert played.returncode == 0, played.stderr
    assert played.stdout.split() == str(np.array([episode.episode_return for episode in evaluation.episodes])).split()


def described(folder: Path) -> dict[str, Any]:
    description = describe(load_trained(CheckpointConfig(savedir=str(folder.parent), xpid=folder.name)))
    copy: dict[str, Any] = json.loads(json.dumps(description))
    return copy


def test_an_atari_game_is_described_in_full(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "pong", "ALE/Pong-v5", ModelConfig(model="shallow"), kwargs={"frameskip": 2})
    description = described(folder)
    assert description["reward_clipping"] == "abs_one"
    assert description["environment"] == {
        "id": "ALE/Pong-v5",
        "preset": "atari-v5",
        "kwargs": {"frameskip": 2},
        "wrappers": [],
        "time_limit": 0,
        "atari": {
            "game": "pong",
            "vector_env": {
                "repeat_action_probability": 0.25,
                "noop_max": 0,
                "use_fire_reset": False,
                "frameskip": 2,
                "maxpool": True,
                "img_height": 84,
                "img_width": 84,
                "grayscale": True,
                "full_action_space": False,
                "max_num_frames_per_episode": 108_000,
            },
            "frame_stack": 4,
            "fire_after_life": False,
            "episodic_life": {"training": False, "evaluation": False},
        },
        "action_meanings": ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"],
        "notes": [],
    }
    assert description["inputs"][0]["meaning"].startswith("4 frames, oldest first")


def test_actions_are_named_where_the_environment_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = "kubebeast_envserver.catch:Catch-v0"
    folder = write_run(tmp_path / "catch", env, ModelConfig(model="mlp"))
    environment: dict[str, Any] = {
        "id": env,
        "preset": "none",
        "kwargs": {},
        "wrappers": [],
        "time_limit": 0,
        "atari": None,
        "action_meanings": None,
        "notes": [],
    }
    assert described(folder)["environment"] == environment
    monkeypatch.setattr(Catch, "get_action_meanings", lambda self: ["left", "stay", "right"], raising=False)
    assert described(folder)["environment"]["action_meanings"] == ["left", "stay", "right"]


def test_an_environment_that_is_not_here_is_described_as_far_as_the_run_tells(tmp_path: Path) -> None:
    here = make_vector_env("kubebeast_envserver.catch:Catch-v0", 1)
    leaves = here.spec_observation, here.spec_action
    folder = write_checkpoint(tmp_path / "away", "nowhere:Catch-v0", *leaves, ModelConfig(model="mlp"))
    environment = described(folder)["environment"]
    assert (environment["id"], environment["action_meanings"]) == ("nowhere:Catch-v0", None)
    assert environment["notes"] == ["the run does not record the settings of its environment; assumed: preset none"]


def test_what_this_version_cannot_play_is_described_as_it_was_told(tmp_path: Path) -> None:
    here = make_vector_env("kubebeast_envserver.catch:Catch-v0", 1)
    leaves, told = (here.spec_observation, here.spec_action), EnvConfig(preset="atari-v9", kwargs={"frameskip": 2})
    folder = write_checkpoint(tmp_path / "new", "ALE/Catch-v9", *leaves, ModelConfig(model="mlp"), env_config=told)
    environment = described(folder)["environment"]
    assert (environment["preset"], environment["kwargs"]) == ("atari-v9", {"frameskip": 2})
    assert environment["atari"] is environment["action_meanings"] is None
    assert environment["notes"][0].startswith("preset = 'atari-v9': must be one of")
