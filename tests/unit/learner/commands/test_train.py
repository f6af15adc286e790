"""The processes of `kubebeast train` and `kubebeast learner` refuse bad settings and end in order."""

import math
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.processes.training_process import rows
from kubebeast_learner.actors.remote import actors
from kubebeast_learner.commands import train
from kubebeast_learner.config import (
    ConfigError,
    LearnerConfig,
    LocalFleetConfig,
    ModelConfig,
    OpponentsConfig,
    PoolConfig,
    ReplayConfig,
    RolloutConfig,
    RunConfig,
    TrainConfig,
)
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.run.checkpoint import CheckpointStore, Saved

PATIENCE_S = 60.0


def ask(port: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"address": ""}, "address = '': .*or dial names theirs"),
        ({"inference_device": "cuda:99"}, "inference_device = 'cuda:99': "),
        ({"token_file": Path("nowhere")}, "token_file = 'nowhere': No such file"),
    ],
)
def test_a_learner_nobody_can_reach_makes_no_run(settings: dict[str, Any], reason: str, tmp_path: Path) -> None:
    config = LearnerConfig(run=RunConfig(savedir=str(tmp_path)), pool=PoolConfig(**settings))
    with pytest.raises(ConfigError, match=reason):
        train.learn(config)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "value"), [("dial", "a:1"), ("token_file", Path("tokens"))])
def test_what_local_env_servers_do_not_know_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    config = TrainConfig(run=RunConfig(savedir=str(tmp_path)), pool=PoolConfig(**{"address": "", name: value}))
    with pytest.raises(ConfigError, match=f"{name} = '{value}': is for kubebeast learner"):
        train.train(config)
    assert list(tmp_path.iterdir()) == []


def test_an_http_address_in_use_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = RunConfig(savedir=str(tmp_path), xpid="run", progress="none")
        config = LearnerConfig(run=run, pool=PoolConfig(address="127.0.0.1:0", http_address=address))
        assert train.learn(config) == 2
    assert f"http_address = '{address}': Address already in use" in caplog.text


def test_a_run_that_ends_is_not_ready_but_alive_until_its_last_checkpoint_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: dict[str, tuple[int, str]] = {}
    save = CheckpointStore.save

    def ask_and_save(store: CheckpointStore, state: dict[str, Any]) -> Saved:
        port = re.search(r"serving HTTP on port (\d+)", caplog.text)
        assert port is not None
        answers.update({path: ask(port[1], path) for path in ("/readyz", "/healthz")})
        return save(store, state)

    monkeypatch.setattr(CheckpointStore, "save", ask_and_save)
    config = TrainConfig(
        run=RunConfig(xpid="run", savedir=str(tmp_path), total_steps=40, compile="off", progress="none"),
        rollout=RolloutConfig(unroll_length=5, batch_size=2),
        model=ModelConfig(model="mlp"),
        pool=PoolConfig(address="", http_address="127.0.0.1:0"),
        fleet=LocalFleetConfig(env="CartPole-v1", num_actors=2, num_servers=1),
    )
    assert train.train(config) == 0
    assert answers == {"/readyz": (503, "draining\n"), "/healthz": (200, "ok\n")}


def test_a_training_makes_the_stacks_where_frames_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors, "takes_single_frames", lambda *devices: True)
    config = TrainConfig(
        run=RunConfig(xpid="run", savedir=str(tmp_path), total_steps=40, device="cpu", compile="off", progress="none"),
        rollout=RolloutConfig(unroll_length=5, batch_size=2),
        replay=ReplayConfig(replay_share=0.5, replay_capacity=8),
        model=ModelConfig(model="shallow"),
        pool=PoolConfig(address=""),
        fleet=LocalFleetConfig(env="Mock", env_kwargs='{"episode_length": 7}', num_actors=2, num_servers=1),
    )
    assert train.train(config) == 0
    # A row that was written before the first update has no loss.
    losses = [float(row["total_loss"]) for row in rows(tmp_path / "run") if row["total_loss"]]
    assert losses and all(map(math.isfinite, losses))


def test_ranks_of_a_machine_share_its_env_servers() -> None:
    fleet = LocalFleetConfig(num_servers=5, num_actors=12, num_learners=2)
    shares = [
        train.share_of_fleet(fleet, Place(rank=2 + index, num_ranks=4, local_rank=index, num_local_ranks=2))
        for index in range(2)
    ]

    assert [share.num_servers for share in shares] == [3, 2]
    assert [share.num_actors for share in shares] == [6, 6]


def test_ranks_dial_different_env_servers() -> None:
    config = LearnerConfig(pool=PoolConfig(dial="a:1,b:1-4,c:1"))
    places = [Place(rank=rank, num_ranks=2) for rank in range(2)]

    assert [train.of_rank(config, place).pool.dial for place in places] == ["a:1,c:1", "b:1-4"]
    with pytest.raises(ConfigError, match="names fewer than 4, one for each learner"):
        train.of_rank(config, Place(rank=3, num_ranks=4))


@pytest.mark.parametrize("name", ["learn", "train"])
def test_several_learners_with_opponents_make_no_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(variable, value)
    run, opponents = RunConfig(savedir=str(tmp_path)), OpponentsConfig(opponents="uniform")
    commands: dict[str, Callable[[], int]] = {
        "learn": lambda: train.learn(LearnerConfig(run=run, opponents=opponents)),
        "train": lambda: train.train(TrainConfig(run=run, opponents=opponents)),
    }
    with pytest.raises(ConfigError, match="opponents = 'uniform': a league belongs to one learner"):
        commands[name]()
    assert list(tmp_path.iterdir()) == []


def test_num_learners_are_started_with_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[tuple[int, Sequence[str]]] = []

    def launch(num_ranks: int, words: Sequence[str]) -> int:
        launched.append((num_ranks, words))
        return 7

    monkeypatch.setattr(train, "launch", launch)
    config = TrainConfig(run=RunConfig(xpid="pong"), fleet=LocalFleetConfig(num_learners=2))

    assert train.train(config) == 7
    ((num_ranks, words),) = launched
    assert num_ranks == 2
    assert words[0] == "train"
    assert "--xpid=pong" in words
