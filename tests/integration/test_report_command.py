"""`kubebeast report` makes a page of runs that real trainings have left."""

from pathlib import Path

import pytest

from harness.processes.training_process import command, run, training_command


@pytest.mark.parametrize("name", ["train", "mono"])
def test_a_run_has_a_page_with_its_curve_its_settings_and_its_machine(name: str, tmp_path: Path) -> None:
    trained = run(training_command(name, tmp_path, "--total-steps=4000"))
    assert trained.returncode == 0, trained.stderr
    done = run(command("report", "run", f"--savedir={tmp_path}"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"report: {tmp_path / 'run' / 'report.html'}\n"
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for text in ("CartPole-v1", "finished", "Episode return", "recipe CartPole-v1", "Hardware", "float32 [4]", ".pt"):
        assert text in page, text
    assert len(page) < 500_000
