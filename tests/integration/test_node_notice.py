"""A notice that the node is about to go: a checkpoint at once, which a run that is killed afterwards goes on from."""

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.ports import free_port
from harness.processes import warm_start
from harness.processes.s3_server import BUCKET, serve_s3
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, environment, rows, training_command
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.checkpoints import list_checkpoints

RARE = ("--checkpoint-interval-minutes=600", "--log-interval-s=600", "--total-steps=1000000000", "--progress=none")
"""No checkpoint and no row in the time of a test but those of notices and of the end."""
SAVED = re.compile(r"saved \S+/checkpoint-0*(\d+)\.pt")


def start(words: Sequence[str], cwd: Path, **variables: str) -> warm_start.Process:
    return warm_start.Process(words, env=environment(**variables), cwd=cwd)


def until(process: warm_start.Process, pattern: str) -> str:
    """Reads errors of a process up to the first line with the pattern, and returns the line."""
    seen = []
    for line in process.stderr:
        seen.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError(f"no {pattern}: {''.join(seen)}")


def saved_step(process: warm_start.Process) -> int:
    found = SAVED.search(until(process, SAVED.pattern))
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("name", ["mono", "train"])
def test_a_run_that_is_killed_after_a_notice_goes_on_from_its_checkpoint(tmp_path: Path, name: str) -> None:
    notice = tmp_path / "notice"
    words = training_command(name, tmp_path, *RARE, f"--node-notice={notice}")
    with start(words, tmp_path) as process:
        until(process, "training on")
        notice.write_text("the node goes at noon")
        until(process, f"notice for this node: {notice} has 21 bytes; a checkpoint follows, training goes on")
        step = saved_step(process)
        process.kill()
    assert checkpoint_steps(tmp_path / "run") == [step], "one notice is one checkpoint"
    assert [row["node_notices"] for row in rows(tmp_path / "run")] == ["1"]

    notice.unlink()
    with start(words, tmp_path) as process:
        until(process, rf"resuming \S+ at step {step} of")
        until(process, "training on")
        notice.write_text("again")
        again = saved_step(process)
        process.terminate()
        last = saved_step(process)
        assert process.wait(TIMEOUT_S) == 0
    assert step < again < last
    assert [int(row["step"]) for row in rows(tmp_path / "run")][-1] == last, "SIGTERM saves everything"


def test_a_notice_and_sigterm_save_into_a_bucket(tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    with serve_s3() as s3, pytest.MonkeyPatch.context() as patch:
        for name, value in s3.environment.items():
            patch.setenv(name, value)
        url = f"s3://{BUCKET}/runs"
        words = [*training_command("mono", tmp_path, *RARE, f"--node-notice={notice}"), f"--savedir={url}"]
        with start(words, tmp_path, **s3.environment) as process:
            until(process, "training on")
            notice.write_text("soon")
            step = saved_step(process)
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
        last, *older = (saved.step for saved in list_checkpoints(RunFiles(Bucket(url), "run")))
    assert older == [step] and last > step


@contextlib.contextmanager
def ranks_on_nodes(words: Sequence[str], folders: Sequence[Path]) -> Iterator[list[warm_start.Process]]:
    """Starts a rank for each folder, its working directory, as on a node of its own."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(len(folders))}
    local = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    with contextlib.ExitStack() as stack:
        ranks = [start(words, folder, RANK=str(rank), **common, **local) for rank, folder in enumerate(folders)]
        for process in ranks:
            stack.enter_context(process)
        try:
            yield ranks
        finally:
            for process in ranks:
                process.kill()


def test_a_notice_for_the_node_of_any_rank_is_a_checkpoint_of_the_first(tmp_path: Path) -> None:
    folders = [tmp_path / "node0", tmp_path / "node1"]
    for folder in folders:
        folder.mkdir()
    words = training_command("train", tmp_path, *RARE, "--node-notice=notice")
    with ranks_on_nodes(words, folders) as (first, second):
        until(first, "training on")
        (folders[1] / "notice").write_text("the second node goes")
        until(second, "notice for this node")
        step = saved_step(first)
        (folders[0] / "notice").write_text("and the first one")
        until(first, "notice for this node")
        assert saved_step(first) > step
    assert len(checkpoint_steps(tmp_path / "run")) == 2
    assert [row["node_notices"] for row in rows(tmp_path / "run")] == ["1", "2"]


def test_learners_of_one_node_save_one_checkpoint(tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    words = training_command("train", tmp_path, *RARE, f"--node-notice={notice}", "--num-learners=2")
    with start(words, tmp_path) as process:
        until(process, "training on")
        notice.write_text("soon")
        step = saved_step(process)
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    steps = checkpoint_steps(tmp_path / "run")
    assert steps[0] == step and len(steps) == 2


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--node-notice=ftp://host/notice"], "node_notice = 'ftp://host/notice': must be http"),
        (["--node-notice=http://user:secret@host/notice"], "without a password"),
        (["--node-notice=aws", "--disable-checkpoint"], "node_notice = 'aws': disable_checkpoint is set"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(tmp_path: Path, flags: list[str], reason: str) -> None:
    words = [sys.executable, "-m", "kubebeast_learner", "mono", "--env=CartPole-v1", f"--savedir={tmp_path}", *flags]
    process = warm_start.run(words, env=environment(), timeout=TIMEOUT_S)
    assert process.returncode == 2 and reason in process.stderr
