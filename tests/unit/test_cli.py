"""The command line, up to the function that a subcommand starts."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kubebeast_learner import __version__, cli
from kubebeast_learner.config import ConfigError, EvalConfig, MonoConfig, PlotConfig, TrainConfig
from kubebeast_learner.config_sources import as_settings


def test_flags_of_torchbeast_are_understood(started: list[TrainConfig]) -> None:
    words = """--env PongNoFrameskip-v4 --num_actors 4 --num_servers 2 --total_steps 1000 --batch_size 4
        --unroll_length 80 --savedir logs --xpid pong --learning_rate 0.001 --entropy_cost 0.01 --baseline_cost 0.4
        --discounting 0.98 --reward_clipping none --alpha 0.9 --momentum 0.1 --epsilon 0.02 --grad_norm_clipping 30
        --use_lstm --disable_checkpoint --num_inference_threads 2 --max_learner_queue_size 9"""
    assert cli.main(["train", *words.split()]) == 0
    (config,) = started
    assert config.fleet.num_actors == 4 and config.fleet.num_servers == 2
    assert config.run.savedir == Path("logs") and config.run.disable_checkpoint
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
    assert config.fleet.num_servers == 3  # the recipe's
    assert config.pool.max_inference_rows == 256  # the default


def test_a_saved_config_starts_the_same_run_again(started: list[TrainConfig], tmp_path: Path) -> None:
    cli.main(["train", "--env", "CartPole-v1", "--use_lstm", "--hidden_sizes", "8", "4", "--xpid", "007"])
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(as_settings(started[0])), encoding="utf-8")
    cli.main(["train", "--config", str(path)])
    assert started[1] == started[0]


def test_sources_are_shown_at_the_start(started: list[TrainConfig], capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["train", "--env", "CartPole-v1"])
    assert "settings of recipe CartPole-v1: model=mlp" in capsys.readouterr().err


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
    try:
        status: Any = cli.main(["train", *words])
    except SystemExit as end:
        status = end.code
    text = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert status == 2 and started == []
    assert [part for part in parts if part not in text] == []


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
    with pytest.raises(SystemExit) as end:
        cli.main(words.split())
    assert end.value.code == 2 and started == []
    assert reason in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_every_command_of_the_guide_to_runs_is_accepted(started: list[Any]) -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "runs.md"
    lines = [line.strip() for line in guide.read_text(encoding="utf-8").splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("kubebeast ")]
    assert {words[0] for words in commands} >= {"plot", "eval", "render", "export"}
    assert [words for words in commands if cli.main(words) != 0] == []
    assert len(started) == len(commands)


def test_a_bad_variable_is_shown_with_its_source(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBEAST_UNROLL_LENGTH", "0")
    with pytest.raises(SystemExit) as end:
        cli.main(["learner"])
    assert end.value.code == 2
    assert "settings of environment: unroll_length=0" in capsys.readouterr().err


def test_a_config_error_of_the_command_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(config: EvalConfig) -> int:
        raise ConfigError("xpid = 'gone': there is no checkpoint")

    module = ModuleType("kubebeast_learner.evaluate")
    module.run = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert cli.main(["eval", "--xpid", "gone"]) == 2
    assert "xpid = 'gone'" in capsys.readouterr().err


def test_a_missing_native_package_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kubebeast_native", None)
    for name in ("distributed", "remote_actors"):
        monkeypatch.delitem(sys.modules, f"kubebeast_learner.{name}", raising=False)
    assert cli.main(["train"]) == 1
    error = capsys.readouterr().err
    assert "kubebeast-learner[distributed]" in error and "kubebeast mono" in error


def test_unknown_command_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian"]) == 2
    captured = capsys.readouterr()
    assert "'trian'" in captured.err and "train" in captured.err and captured.out == ""


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"kubebeast {__version__}"
    assert cli.main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in cli.COMMANDS)


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys; from kubebeast_learner.cli import main; main(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


def test_mono_takes_the_recipe_of_its_environment(started: list[MonoConfig]) -> None:
    assert cli.main(["mono", "--env", "CartPole-v1", "--num_buffers", "60"]) == 0
    (config,) = started
    assert config.actors.num_actor_processes == 1 and config.rollout.unroll_length == 20
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
