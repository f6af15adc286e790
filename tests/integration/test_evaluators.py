"""Several evaluators play the checkpoints of one training, in a folder and in a bucket, and choose its best."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.s3_server import BUCKET, serve_s3
from harness.processes.training_process import TIMEOUT_S, command, environment, run, training_command
from kubebeast_runs.best.judging import judged
from kubebeast_runs.checkpoints import list_checkpoints
from kubebeast_runs.home import evaluations_of, files_of
from kubebeast_runs.scores import read_scores

EVALUATORS = {"greedy": "--mode=greedy", "sampling": "--mode=sample"}
CHECKPOINTS = ["--checkpoint-interval-minutes=0.01", "--keep-checkpoints=2", "--keep-best=2", "--best-by=evaluation"]


@pytest.fixture(params=["folder", "bucket"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, dict[str, str]]]:
    """URL or folder of the runs, and the environment of processes that use it."""
    if request.param == "folder":
        yield str(tmp_path), {}
        return
    with serve_s3() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{BUCKET}/runs", server.environment


def short(words: list[str]) -> list[str]:
    """Returns a command with short leases and uploads."""
    return [sys.executable, "-m", "tests.integration.short_leases", *words[3:]]


def follower(savedir: str, name: str, *flags: str) -> list[str]:
    return short(command("eval", "--follow", f"--savedir={savedir}", "--xpid=run", f"--name={name}", *flags))


def until(process: warm_start.Process, pattern: str) -> str:
    """Reads errors of a process up to the first line that has the pattern, and returns the line."""
    seen = []
    for line in process.stderr:
        seen.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError("".join(seen))


def train(savedir: str, *flags: str) -> list[str]:
    settings = [*CHECKPOINTS, "--best-evaluator=sampling", "--progress=none", f"--savedir={savedir}"]
    return [*short(training_command("mono", Path("unused"), *settings)), *flags]


def train_and_evaluate(savedir: str, variables: dict[str, str]) -> None:
    """Trains until each evaluator has scored three checkpoints, and lets them score the last one."""
    with warm_start.Process(train(savedir, "--total-steps=1000000000"), env=variables) as learner, ExitStack() as stack:
        until(learner, "training on")
        evaluators = {
            name: stack.enter_context(warm_start.Process(follower(savedir, name, "--episodes=4", flag), env=variables))
            for name, flag in EVALUATORS.items()
        }
        for _ in range(3):
            for process in evaluators.values():
                until(process, "mean return")
        second = warm_start.run(follower(savedir, "greedy"), timeout=TIMEOUT_S, env=variables)
        reason = r"name = 'greedy': process \d+ on \S+ follows the run 'run' by this name"
        assert second.returncode == 2 and re.search(reason, second.stderr)
        learner.terminate()
        learner.stderr.read()
        assert learner.wait(TIMEOUT_S) == 0
        for process in evaluators.values():
            until(process, "the training has stopped at step")
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(TIMEOUT_S) == 0


def test_two_evaluators_play_one_training_and_one_of_them_chooses_its_best(
    place: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    savedir, servers = place
    variables = environment(**servers)
    train_and_evaluate(savedir, variables)
    files, evaluations = files_of(savedir, "run"), evaluations_of(savedir, "run")
    assert list(evaluations) == ["greedy", "sampling"]
    assert all(len(read_scores(scored, name).steps) >= 3 for name, scored in evaluations.items())

    newest = list_checkpoints(files)[0].step
    best_steps = [each.saved.step for each in judged(files, evaluations, "sampling")][:2]
    resumed = run([*train(savedir, f"--total-steps={newest + 1}")], **variables)
    assert resumed.returncode == 0, resumed.stderr
    last, *others = [saved.step for saved in list_checkpoints(files)]
    assert last > newest and set(others) == {newest, *best_steps}

    best = judged(files, evaluations, "sampling")[0]
    play = ["eval", f"--savedir={savedir}", "--xpid=run", "--best", "--episodes=1", "--json"]
    played = run(command(*play, "--best-evaluator=sampling"), **variables)
    assert played.returncode == 0, played.stderr
    result = json.loads(played.stdout)
    assert (result["step"], result["notes"]) == (best.saved.step, [str(best)])
    unclear = run(command(*play), **variables)
    reason = "it is unclear which evaluator counts; evaluators with scores: greedy, sampling"
    assert unclear.returncode == 2 and reason in unclear.stderr
    source = f"--init-from={savedir}/run@best:sampling"
    warm = run([*training_command("mono", tmp_path), "--xpid=later", source, "--total-steps=1"], **variables)
    assert warm.returncode == 0 and f"names {best}" in warm.stderr, warm.stderr
