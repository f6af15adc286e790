"""The command line describes itself: --help, examples, completion in shells."""

import itertools
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kubebeast_common.cli import main as cli
from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.completion import script
from kubebeast_common.cli.settings import setting_types
from tests.unit.common.cli.test_main import status_of


def test_help_shows_the_defaults_that_recipe_file_and_environment_leave(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBEAST_BATCH_SIZE", "13")
    assert status_of(["train", "--recipe", "CartPole-v1", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Defaults of recipe CartPole-v1: model=mlp" in text and "Defaults of environment: batch_size=13" in text
    assert "Transitions in an unroll (T). (default: 20)" in text
    assert "Unrolls in a training batch (B). (default: 13)" in text


@pytest.mark.parametrize("name", find_commands())
def test_help_names_every_setting_under_titles_of_words_and_ends_with_examples(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert status_of([*name.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    settings = setting_types(find_commands()[name].config_type)
    named = {word.strip(",") for line in lines if line.startswith("  -") for word in line.split()}
    assert {f"--{setting.replace('_', '-')}" for setting in settings} <= named
    assert lines[0].startswith(f"usage: kubebeast {name}")
    examples = lines[lines.index("Examples:") + 1 :]
    assert examples == [f"  kubebeast {name} {example}" for example in find_commands()[name].examples]
    assert [line for line in lines if len(line) > 80 and line not in examples] == []
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles and not any("settings" in title and "." in title for title in titles)
    if "env" in settings:
        assert next(line for line in lines if line.startswith("  -")).startswith("  --env ")


@pytest.mark.parametrize("name", find_commands())
def test_the_examples_of_a_command_are_accepted(
    started: list[Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pong.yaml").write_text("env: PongNoFrameskip-v4\n", encoding="utf-8")
    examples = find_commands()[name].examples
    for example in examples:
        assert cli.main([*name.split(), *example.split()]) == 0
    assert len(started) == len(examples) > 0


def test_a_text_of_help_breaks_where_a_line_is_full(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status_of(["train", "--help"])
    lines = capsys.readouterr().out.splitlines()
    broken = [
        line
        for line, following in itertools.pairwise(lines)
        if line.startswith(" " * 30) and following.startswith(" " * 30) and len(f"{line} {following.split()[0]}") <= 78
    ]
    assert broken == []


@pytest.mark.parametrize("words", ["--help", "train --help"])
def test_a_reader_that_goes_away_is_no_error(words: str) -> None:
    command = [sys.executable, "-m", "kubebeast_learner", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"kubebeast {version('kubebeast-common')}"
    assert cli.main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in find_commands())


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys; from kubebeast_common.cli.main import main; main(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_flag(shell: str) -> None:
    text = script(shell)
    for name, command in find_commands().items():
        flags = [name.replace("_", "-") for name in setting_types(command.config_type)]
        assert name.split()[-1] in text and all(flag in text for flag in flags)


def test_bash_completes_commands_and_flags() -> None:
    asks = "COMP_WORDS=({}); COMP_CWORD={}; _kubebeast; echo ${{COMPREPLY[@]}}"
    lines = "\n".join([script("bash"), asks.format("kubebeast tr", 1), asks.format("kubebeast train --unroll", 2)])
    result = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.splitlines() == ["train", "--unroll-length"]
