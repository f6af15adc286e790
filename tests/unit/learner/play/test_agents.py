"""Several agents in one environment can be played, shown and tried."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.config import CheckEnvConfig, EvalConfig, ModelConfig, RenderConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.play.check_env import check_env, run
from kubebeast_learner.play.evaluate import evaluate
from kubebeast_learner.play.players import OwnPlayer
from kubebeast_learner.play.playing import PlayedEpisode, play
from kubebeast_learner.play.render import render
from tests.integration.hunt import HUNT, NUM_AGENTS
from tests.integration.toll import TOLL
from tests.unit.learner.play.playing import write_run

GAME = ["ppp", "ptp", "p.x", "t.."]
EPISODES = [PlayedEpisode(6.0, 3), PlayedEpisode(1.0, 1), PlayedEpisode(3.0, 2)]
NOTE = "3 agents play together: an episode is that of one agent, and the mean is over agents"


@pytest.fixture
def savedir(tmp_path: Path) -> Path:
    """An untrained model with memory."""
    write_run(tmp_path / "hunt", HUNT, ModelConfig(model="mlp", use_lstm=True), kwargs={"games": [GAME]})
    return tmp_path


@pytest.mark.parametrize(("asked", "num_games"), [(1, 1), (3, 1), (4, 2)])
def test_a_score_is_the_mean_over_the_agents_of_whole_games(savedir: Path, asked: int, num_games: int) -> None:
    evaluation = evaluate(EvalConfig(savedir=str(savedir), xpid="hunt", episodes=asked))
    assert evaluation.episodes == EPISODES * num_games
    assert evaluation.mean_return == 10 / 3 and evaluation.notes == [NOTE]


def test_a_film_shows_the_game_until_every_agent_has_played(savedir: Path) -> None:
    out = savedir / "hunt.gif"
    summary, note = render(RenderConfig(savedir=str(savedir), xpid="hunt", out=out, episodes=2)).splitlines()
    with Image.open(out) as film:
        assert film.n_frames == 2 * len(GAME)  # type: ignore[attr-defined]
        assert film.info["duration"] == 200
    assert summary.endswith("return 6, return 1, return 3, return 6, return 1, return 3") and note == NOTE


class Witness:
    """A player that notes the agents for which it is asked."""

    def __init__(self) -> None:
        self.agents: list[int] = []

    def act(self, observation: Any) -> int:
        self.agents.append(int(observation[0]))
        return 0


@pytest.mark.parametrize(
    ("env_id", "env_kwargs", "agents"),
    [(HUNT, {"games": [GAME]}, [1, 2, 2]), (TOLL, {"num_agents": 3, "num_moves": 6}, [1, 2, 1, 2])],
)
def test_an_opponent_is_asked_only_for_the_agents_that_it_plays(
    env_id: str, env_kwargs: dict[str, Any], agents: list[int]
) -> None:
    env, witness = make_vector_env(env_id, NUM_AGENTS, env_kwargs=env_kwargs), Witness()
    model = make_model(env.spec_observation, env.spec_action, ModelConfig(model="mlp", hidden_sizes=(8,)))
    opponent = OwnPlayer("my_code:Witness", witness, env.spec_observation, env.spec_action)
    (episode,) = play(env, model.eval(), "greedy", torch.Generator(), 100, opponent=opponent)
    assert not episode.cut_off and witness.agents == agents


def settings(games: list[list[str]]) -> CheckEnvConfig:
    return CheckEnvConfig(env=HUNT, env_kwargs=json.dumps({"games": games}), steps=18)


def test_agents_are_tried_together(capsys: pytest.CaptureFixture[str]) -> None:
    _, trial, _, _ = check_env(settings([GAME] * 3))
    assert (trial.num_agents, trial.steps, trial.violations) == (NUM_AGENTS, 18, [])
    assert [episode.length for episode in trial.episodes[:6]] == [1, 2, 3] * 2
    assert run(settings([GAME] * 3)) == 0
    assert "18 random steps of 3 agents" in capsys.readouterr().out


def test_a_violation_of_one_agent_is_told_once() -> None:
    (violation,) = check_env(settings([["ppp", "pnp"]]))[1].violations
    assert "reward nan" in violation.text and violation.count == 1
