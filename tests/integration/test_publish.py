"""`kubebeast publish`, from a run to the Hub and back: the commands of the card play and train what was pushed."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from harness.ports import free_port
from harness.processes import training_process
from harness.processes.s3_server import BUCKET, serve_s3
from harness.processes.training_process import TIMEOUT_S, command, environment, training_command
from tests.hub_server import TOKEN, Hub, serve_hub

pytestmark = pytest.mark.slow
WITHOUT_HUB = """
import sys
sys.modules["huggingface_hub"] = None  # an import of it raises
from kubebeast_common.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def savedir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run."""
    folder = tmp_path_factory.mktemp("runs")
    process = training_process.run(training_command("mono", folder, "--total-steps=400"))
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serve_hub() as server:
        yield server


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(**variables)
    )


def test_the_commands_of_a_card_download_play_film_and_train_the_model(savedir: Path, hub: Hub, tmp_path: Path) -> None:
    variables = hub.environment(tmp_path / "home")
    score = run(command("eval", "--follow", f"--savedir={savedir}", "--xpid=run", "--episodes=2"), tmp_path)
    assert score.returncode == 0, score.stderr
    flags = [f"--savedir={savedir}", "--to-hub=me/cart", "--private"]
    process = run(command("publish", "run", *flags), tmp_path, **variables)
    assert process.returncode == 0, process.stderr
    assert f"pushed: {hub.url}/me/cart/commit/" in process.stdout and "2 episodes of evaluation" in process.stdout
    assert TOKEN not in process.stdout + process.stderr
    assert set(hub.repositories["me/cart"].files) == {path.name for path in (tmp_path / "cart-model").iterdir()}

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    card = ModelCard(hub.repositories["me/cart"].files["README.md"].decode())
    lines = card.text.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.split()[:2] for line in lines] == [
        *(["hf", "download"], ["kubebeast", "eval"], ["kubebeast", "render"], ["kubebeast", "mono"]),
    ]
    for line in lines:
        program, *words = shlex.split(line)
        python = [sys.executable, "-m", "kubebeast_learner"]
        own = [f"--savedir={elsewhere}", "--progress=none"] if words[0] == "mono" else []
        start = python if program == "kubebeast" else [str(Path(sys.executable).with_name(program))]
        process = run([*start, *words, *own], elsewhere, **variables)
        assert process.returncode == 0, f"{line}: {process.stderr}"
    assert (elsewhere / "episode.gif").stat().st_size > 0
    assert "taken" in (elsewhere / "further" / "out.log").read_text()


def test_a_run_in_a_bucket_is_published(savedir: Path, tmp_path: Path) -> None:
    with serve_s3() as s3:
        words = [*training_command("mono", tmp_path, "--total-steps=400"), f"--savedir=s3://{BUCKET}/runs"]
        process = run(words, tmp_path, **s3.environment)
        assert process.returncode == 0, process.stderr
        process = run(command("publish", f"s3://{BUCKET}/runs/run", "--out=model"), tmp_path, **s3.environment)
    assert process.returncode == 0, process.stderr
    assert "model: README.md, weights.safetensors, config.yaml, curve.png; made of " in process.stdout


@pytest.mark.parametrize("fault", ["token", "refused", "package"])
def test_a_push_that_fails_is_one_line_and_status_1(savedir: Path, hub: Hub, tmp_path: Path, fault: str) -> None:
    variables = hub.environment(tmp_path / "home", token="hf_wrongwrongwrong" if fault == "token" else TOKEN)
    words = command("publish", "run", f"--savedir={savedir}", "--to-hub=me/other")
    if fault == "refused":
        variables["HF_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"
    if fault == "package":
        words = [sys.executable, "-c", WITHOUT_HUB, *words[3:]]
    process = run(words, tmp_path, **variables)
    reason = {
        "token": f"me/other at {hub.url}: HTTP 401: there is no valid token",
        "refused": f"me/other at {variables['HF_ENDPOINT']}: ",
        "package": "the package huggingface_hub is missing: pip install 'kubebeast-learner[hub]'",
    }
    assert process.returncode == 1
    (line,) = process.stderr.splitlines()
    assert line.startswith("kubebeast publish: ") and reason[fault] in line
    assert "hf_wrong" not in process.stdout + process.stderr
    assert (tmp_path / "other-model").exists() == (fault != "package"), "the folder is complete without the Hub"
