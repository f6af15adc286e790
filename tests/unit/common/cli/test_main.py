"""The command line is parsed up to the function that a subcommand starts."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kubebeast_common.cli import main as cli
from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.settings import as_settings
from kubebeast_learner.config import ConfigError, EvalConfig, MonoConfig, TrainConfig
from kubebeast_observe.settings import PlotConfig


def status_of(words: Sequence[str]) -> object:
    """Returns the exit status of a command line."""
    try:
        return cli.main(words)
    except SystemExit as end:
        return end.code


def test_flags_of_torchbeast_are_understood(started: list[TrainConfig]) -> None:
    words = """--env PongNoFrameskip-v4 --num_actors 4 --num_servers 2 --total_steps 1000 --batch_size 4
        --unroll_length 80 --savedir logs --xpid pong --learning_rate 0.001 --entropy_cost 0.01 --baseline_cost 0.4
        --discounting 0.98 --reward_clipping none --alpha 0.9 --momentum 0.1 --epsilon 0.02 --grad_norm_clipping 30
        --use_lstm --disable_checkpoint --num_inference_threads 2 --max_learner_queue_size 9"""
    assert cli.main(["train", *words.split()]) == 0
    (config,) = started
    assert config.fleet.num_actors == 4 and config.fleet.num_servers == 2
    assert config.run.savedir == str(Path("logs").absolute()) and config.run.disable_checkpoint
    assert config.model.use_lstm and config.loss.reward_clipping == "none"
    assert config.optimizer.alpha == 0.9 and config.optimizer.grad_norm_clipping == 30
    assert config.pool.max_learner_queue_size == 9


def test_hyphens_and_underscores_are_the_same(started: list[TrainConfig]) -> None:
    cli.main(["train", "--unroll-length", "7"])
    cli.main(["train", "--unroll_length", "7"])
    assert started[0] == started[1]


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_recipe(
    started: list[TrainConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("num_actors: 12\nunroll_length: 12\nbatch_size: 12\n", encoding="utf-8")
    monkeypatch.setenv("KUBEBEAST_UNROLL_LENGTH", "13")
    monkeypatch.setenv("KUBEBEAST_BATCH_SIZE", "13")
    cli.main(["train", "--config", str(path), "--batch_size", "14"])
    (config,) = started
    assert (config.fleet.num_actors, config.rollout.unroll_length, config.rollout.batch_size) == (12, 13, 14)
    assert config.fleet.num_servers == 3  # from the recipe
    assert config.pool.max_inference_rows == 256  # the default


def test_a_saved_config_starts_the_same_run_again(started: list[TrainConfig], tmp_path: Path) -> None:
    cli.main(["train", "--env", "CartPole-v1", "--use_lstm", "--hidden_sizes", "8", "4", "--xpid", "007"])
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(as_settings(started[0])), encoding="utf-8")
    cli.main(["train", "--config", str(path)])
    assert started[1] == started[0]


def test_sources_are_shown_at_the_start(started: list[TrainConfig], capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["train", "--recipe", "CartPole-v1"])
    assert "settings of recipe CartPole-v1: model=mlp" in capsys.readouterr().err


def test_settings_that_something_overrides_are_not_shown(
    started: list[TrainConfig], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBEAST_UNROLL_LENGTH", "13")
    cli.main(["train", "--recipe=CartPole-v1", "--batch_size", "14", "--learning-rate=0.5"])
    recipe, environment = (json.loads(line)["message"] for line in capsys.readouterr().err.splitlines())
    assert "recipe CartPole-v1" in recipe and "total_steps=200000" in recipe
    assert not any(name in recipe for name in ("unroll_length", "batch_size", "learning_rate"))
    assert environment.endswith("settings of environment: unroll_length=13")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--unroll_length", "0"], ["unroll_length = 0: must be at least 1"]),
        (["--num_actors", "2"], ["num_actors = 2", "num_servers (3)"]),
        (["--total_steps", "many"], ["--total-steps", "'many'"]),
        (["--model", "huge"], ["model = 'huge'", "shallow"]),
        (["--unroll_lenght", "20"], ["--unroll_lenght", "--unroll-length"]),
        (["--recipe", "chess"], ["recipe = 'chess'", "CartPole-v1"]),
    ],
)
def test_bad_flags_are_named_and_exit_with_2(
    started: list[Any], words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = status_of(["train", *words])
    text = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert status == 2 and started == []
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("command", ["train", "mono", "learner", "eval", "render"])
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_cannot_be_used_is_refused_by_every_command(
    started: list[Any], command: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of([command, f"--seed={seed}"]) == 2 and started == []
    assert f"seed = {seed}: must lie in [0, 2000000000]" in capsys.readouterr().err


def test_plot_takes_runs_and_flags_in_any_order(started: list[PlotConfig]) -> None:
    cli.main(["plot", "one", "two", "--threshold", "475", "--csv"])
    cli.main(["plot", "--threshold", "475", "--csv", "one", "two"])
    assert started[0] == started[1]
    assert (started[0].runs, started[0].threshold, started[0].csv) == (("one", "two"), 475, True)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("plot", "runs = ()"),
        ("plot run --x-max 0", "x_max = 0.0"),
        ("render --out film.avi", "out = 'film.avi'"),
        ("render --fps 0", "fps = 0.0"),
        ("eval --episodes 0", "episodes = 0"),
        ("export --format onnx", "onnx"),
        ("export --out model.pt", "out = 'model.pt'"),
        ("fleet scale atari -1", "replicas = -1: must not be negative"),
        ("fleet scale atari many", "'many'"),
        ("fleet scale atari", "N"),
        ("fleet scael atari 3", "scael"),
    ],
)
def test_bad_flags_of_the_tools_are_named(
    started: list[Any], words: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(words.split()) == 2 and started == []
    assert reason in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_every_command_of_the_guide_to_runs_is_accepted(started: list[Any]) -> None:
    guide = Path(__file__).resolve().parents[4] / "docs" / "runs.md"
    lines = [line.strip() for line in guide.read_text(encoding="utf-8").splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("kubebeast ")]
    assert {words[0] for words in commands} >= {"plot", "eval", "render", "export"}
    assert [words for words in commands if cli.main(words) != 0] == []
    assert len(started) == len(commands)


def test_a_bad_variable_is_shown_with_its_source(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBEAST_UNROLL_LENGTH", "0")
    assert status_of(["learner"]) == 2
    assert "settings of environment: unroll_length=0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--total_steps", "0"], "kubebeast learner: total_steps = 0: must be at least 1"),
        (["--tls-cert", "c" * 200], f"kubebeast learner: tls_cert = '{'c' * 200}': needs tls_key too"),
        (["--unroll_lenght", "3"], "kubebeast learner: Unrecognized options: --unroll_lenght, 3; Perhaps you meant: "),
        (["--recipe", "chess"], "kubebeast learner: recipe = 'chess': there is no such recipe"),
        (["--env"], "kubebeast learner: Missing value for argument '--env'. Expected 1 values."),
    ],
)
def test_a_refusal_is_one_line_of_json_in_a_pod_and_of_text_where_the_log_is_text(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["learner", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert entry["level"] == "error" and entry["message"].startswith(message)
    assert status_of(["learner", *words, "--log-format=text"]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith(message) and captured.out == ""


def test_a_variable_that_sets_nothing_is_named_with_the_nearest_that_does(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBEAST_UNROL_LENGTH", "7")
    monkeypatch.setenv("KUBEBEAST_ENVS_PER_STREAM", "7")  # of an env-server
    monkeypatch.setenv("KUBEBEAST_RELEASE", "seven")  # of another command
    monkeypatch.setenv("KUBEBEAST_LEARNER_SERVICE_PORT_GRPC", "4431")  # of Kubernetes
    assert cli.main(["eval"]) == 0
    assert capsys.readouterr().err == (
        "kubebeast eval: KUBEBEAST_UNROL_LENGTH is set, and there is no such setting; "
        "did you mean KUBEBEAST_UNROLL_LENGTH?\n"
    )


def test_without_the_env_servers_package_a_variable_that_may_be_its_own_is_passed_over(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kubebeast_envserver.config", None)
    monkeypatch.setenv("KUBEBEAST_UNROL_LENGTH", "7")
    monkeypatch.setenv("KUBEBEAST_ENVS_PER_STREAM", "7")
    assert cli.main(["eval"]) == 0
    assert "did you mean KUBEBEAST_UNROLL_LENGTH" in capsys.readouterr().err


def test_a_config_error_of_the_command_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(config: EvalConfig) -> int:
        raise ConfigError("xpid = 'gone': there is no checkpoint")

    module = ModuleType("kubebeast_learner.play.command")
    module.run = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert cli.main(["eval", "--xpid", "gone"]) == 2
    assert "xpid = 'gone'" in capsys.readouterr().err


def test_a_missing_native_package_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kubebeast_native", None)
    for name in ("commands.train", "actors.remote.actors"):
        monkeypatch.delitem(sys.modules, f"kubebeast_learner.{name}", raising=False)
    assert cli.main(["train"]) == 1
    error = capsys.readouterr().err
    assert "pip install ./native" in error and "kubebeast mono" in error


def test_unknown_command_lists_the_known_ones_and_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian"]) == 2
    captured = capsys.readouterr()
    assert "there is no command 'trian'; did you mean train?" in captured.err and captured.out == ""
    assert all(name in captured.err for name in find_commands())


@pytest.mark.parametrize(
    ("words", "num_servers"),
    [
        ("--env CartPole-v1 --num-learners 2", 2),
        ("--env CartPole-v1 --num_learners=2", 2),
        ("--env CartPole-v1", 3),
        ("--env CartPole-v1 --recipe=CartPole-v1", 1),
        ("--env CartPole-v1 --recipe=CartPole-v1 --num-learners 2", 2),
        ("--env PongNoFrameskip-v4 --num-learners 2", 3),
        ("--env=Acrobot-v1 --recipe=none --model=mlp --num-learners=4", 4),
        ("--env=Acrobot-v1 --recipe=none --model=mlp --num-learners=2", 3),
        ("--task-shares=Catch-v0=1,CartPole-v1=1,Acrobot-v1=2 --num-learners=2", 6),
        ("--env CartPole-v1 --num-learners 2 --num-servers=3", 3),
    ],
)
def test_a_recipe_yields_where_more_env_servers_are_needed(
    started: list[TrainConfig], words: str, num_servers: int
) -> None:
    assert cli.main(["train", *words.split()]) == 0
    assert started[0].fleet.num_servers == num_servers


def test_fewer_env_servers_than_learners_are_refused_where_the_user_wants_them(
    started: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", "--env=CartPole-v1", "--num-learners=2", "--num-servers=1"]) == 2
    assert "num_servers = 1: must be at least 2" in capsys.readouterr().err


def test_paths_of_all_commands_are_absolute(
    started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somewhere")
    files = ["--token-file=t", "--tls-cert=c", "--tls-key=k", "--tls-ca=a"]
    cli.main(["learner", "--savedir=~/logs", "--address=unix:pool", *files])
    cli.main(["render", "--checkpoint=run/weights.safetensors", "--out=film.gif"])
    cli.main(["tune", "--env=CartPole-v1", "--out=settings.yaml"])
    learner, render, tune = started
    assert learner.run.savedir == "/somewhere/logs" and learner.pool.address == f"unix:{tmp_path}/pool"
    pool = learner.pool
    assert [pool.token_file, pool.tls_cert, pool.tls_key, pool.tls_ca] == [tmp_path / name for name in "tcka"]
    assert (render.checkpoint, render.out) == (tmp_path / "run/weights.safetensors", tmp_path / "film.gif")
    assert tune.tuning.out == tmp_path / "settings.yaml"


def test_mono_takes_the_recipe_of_its_environment(started: list[MonoConfig]) -> None:
    assert cli.main(["mono", "--env", "Pong-v4", "--num_buffers", "60"]) == 0
    (config,) = started
    assert config.model.model == "shallow" and config.rollout.unroll_length == 128
    assert config.actors.num_buffers == 60


def test_what_is_given_by_its_place_is_not_read_from_the_environment(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBEAST_GROUP", "of something else")
    monkeypatch.setenv("KUBEBEAST_RUNS", "of-something-else")
    assert cli.main(["fleet", "scale", "envserver", "3"]) == 0
    assert cli.main(["plot", "mine"]) == 0
    assert (started[0].group, started[0].replicas) == ("envserver", 3)
    assert started[1].runs == ("mine",)


def test_sigterm_ends_process_1_of_a_container_before_its_command_has_started(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    try:
        cli.main(["mono"])
        with pytest.raises(SystemExit) as end:
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert end.value.code == 128 + signal.SIGTERM
