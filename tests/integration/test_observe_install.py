"""The commands that watch need neither PyTorch nor NumPy, and name the extra that a command lacks."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.fresh_venv import INSTALL_TIMEOUT_S, fresh_venv, pip_install

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_TIMEOUT_S + 300)]
MB = 1_000_000
PACKAGES = ("./services/common", "./services/runs", "./services/observe")


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the packages that watch."""
    venv = fresh_venv(tmp_path_factory.mktemp("watch"))
    pip_install(venv, "-c", "constraints.txt", *PACKAGES)
    return venv


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with two rows."""
    folder = tmp_path / "runs" / "catch"
    folder.mkdir(parents=True)
    rows = "0,0.0,100,0.5,10.0\n1,10.0,200,1.0,20.0\n"
    (folder / "logs.csv").write_text(f"# _tick,_time,step,mean_episode_return,sps\n{rows}")
    (folder / "meta.json").write_text(json.dumps({"args": {"env": "Catch-v0", "total_steps": 200}, "successful": True}))
    return folder


def kubebeast(venv: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    words = (str(venv / "bin" / "kubebeast"), *words)
    return subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)


def size_mb(venv: Path) -> float:
    (packages,) = venv.glob("lib/python*/site-packages")
    return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) / MB


def test_they_are_small_and_bring_no_arrays(venv: Path) -> None:
    (packages,) = venv.glob("lib/python*/site-packages")
    names = {path.name for path in packages.iterdir()}

    assert not {"torch", "numpy", "gymnasium", "grpc", "matplotlib"} & names
    assert size_mb(venv) <= 40


def test_a_learner_is_watched_and_a_run_is_reported_on(venv: Path, run_folder: Path) -> None:
    top = kubebeast(venv, "top", "--once", "--learner=127.0.0.1:9")
    text = kubebeast(venv, "report", str(run_folder), "--text")
    page = kubebeast(venv, "report", str(run_folder))

    assert top.returncode == 1 and "127.0.0.1:9" in top.stderr and "Traceback" not in top.stderr
    assert text.returncode == 0 and "Catch-v0" in text.stdout and "finished" in text.stdout, text.stderr
    assert page.returncode == 0, page.stderr
    assert "kubebeast-observe[plot]" in (run_folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["plot", "catch"], "the package numpy is missing"),
        (["fleet"], "the package kubernetes is missing"),
        (["train"], "the package kubebeast-learner, which has train, is missing"),
    ],
    ids=["plot", "fleet", "train"],
)
def test_a_command_without_its_packages_names_them(venv: Path, words: list[str], named: str) -> None:
    process = kubebeast(venv, *words)

    assert process.returncode in (1, 2)
    assert named in process.stderr and "Traceback" not in process.stderr


@pytest.mark.parametrize(("extra", "most_mb", "package"), [("plot", 220, "matplotlib"), ("fleet", 210, "kubernetes")])
def test_an_extra_is_small(
    venv: Path, tmp_path: Path, run_folder: Path, extra: str, most_mb: int, package: str
) -> None:
    larger = fresh_venv(tmp_path)
    pip_install(larger, "-c", "constraints.txt", *PACKAGES[:2], f"./services/observe[{extra}]")
    (packages,) = larger.glob("lib/python*/site-packages")

    assert (packages / package).is_dir() and not (packages / "torch").exists()
    assert size_mb(larger) <= most_mb
    if extra == "plot":
        assert kubebeast(larger, "plot", str(run_folder), f"--out={tmp_path}/curve.png").returncode == 0
        assert kubebeast(larger, "report", str(run_folder)).returncode == 0
        assert "<svg" in (run_folder / "report.html").read_text()
