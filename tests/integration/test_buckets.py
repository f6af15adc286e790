"""A run in a bucket goes on on any machine, whatever happens to its process, the network and the store."""

import os
import random
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.processes import warm_start
from harness.processes.s3_server import BUCKET, S3Server, serve_s3
from harness.processes.training_process import FLAGS, TIMEOUT_S, command, environment, snapshots
from kubebeast_learner.run.checkpoint_file import load
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.run_files import RunFiles
from kubebeast_runs.checkpoints import list_checkpoints
from kubebeast_runs.folder import meta_of
from kubebeast_runs.log_table import LogTable, read_table
from kubebeast_runs.parts import evaluation
from tests.faulty_s3 import Fault, FaultyProxy

URL = f"s3://{BUCKET}/runs"
KILLS = int(os.environ.get("TEST_KILLS", "3"))
FAULT_SHARE = 0.25


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serve_s3() as s3:
        yield s3


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server


def words(*flags: str, xpid: str, name: str = "mono") -> list[str]:
    """Returns a training with a short lease."""
    settings = ["--recipe=torchbeast", *FLAGS, "--num-actor-processes=1", f"--savedir={URL}", f"--xpid={xpid}"]
    return [sys.executable, "-m", "tests.integration.short_leases", name, *settings, *flags]


def start(*flags: str, xpid: str, s3: S3Server) -> warm_start.Process:
    """Starts a training that ends with a signal, without progress."""
    settings = ["--total-steps=1000000000", "--progress=none", *flags]
    return warm_start.Process(words(*settings, xpid=xpid), env=environment(**s3.environment))


def run(line: list[str], s3: S3Server) -> tuple[int, str, str]:
    """Runs a command to its end; returns its status, output and errors."""
    process = warm_start.run(line, timeout=TIMEOUT_S, env=environment(**s3.environment))
    return process.returncode, process.stdout, process.stderr


def files_of(xpid: str) -> RunFiles:
    return RunFiles(Bucket(URL), xpid)


def table(xpid: str, folder: Path) -> LogTable:
    files_of(xpid).fetch(folder, lambda name: name == "logs.csv")
    return read_table(folder / "logs.csv")


def until(process: warm_start.Process, is_it: Callable[[str], object]) -> str:
    """Reads errors of a process up to the first line of which `is_it` is true, and returns the line."""
    seen = []
    for line in process.stderr:
        seen.append(line)
        if is_it(line):
            return line
    raise AssertionError("".join(seen))


def test_a_run_goes_on_on_another_machine_and_is_read_from_there(s3: S3Server, tmp_path: Path) -> None:
    status, _, errors = run(words("--total-steps=400", xpid="moves"), s3)
    assert status == 0, errors
    assert f"logs and checkpoints: {URL}/moves" in errors
    status, output, errors = run(words("--total-steps=800", xpid="moves"), s3)
    assert status == 0 and re.search(rf"resuming {URL}/moves/checkpoint-0+4\d\d\.pt at step 4", errors), errors
    steps = table("moves", tmp_path).steps
    assert steps[-1] == snapshots(output)[-1]["step"] >= 800
    assert any(step <= 440 for step in steps), "the rows of the first machine are there"
    meta = meta_of(files_of("moves"))
    assert (meta["successful"], meta["num_crashes"]) == (True, 0)
    assert s3.content("runs/latest") == b"moves\n"
    assert not [key for key in s3.keys("runs/moves/") if key.endswith(".tmp")]

    for read in (
        ["eval", f"--savedir={URL}", "--episodes=1", "--json"],
        ["plot", "mov*", f"--savedir={URL}", f"--out={tmp_path / 'plot.png'}", "--json"],
        ["report", f"{URL}/moves", "--text"],
        ["export", f"--savedir={URL}", f"--out={tmp_path / 'policy.pt2'}"],
        ["mono", *FLAGS, f"--init-from={URL}/moves", f"--savedir={tmp_path}", "--total-steps=1"],
    ):
        status, _, errors = run(command(*read), s3)
        assert status == 0, errors


def test_scores_of_a_follower_are_in_the_bucket(s3: S3Server, tmp_path: Path) -> None:
    assert run(words("--total-steps=400", xpid="followed"), s3)[0] == 0
    line = command("eval", "--follow", f"--savedir={URL}", "--xpid=followed", "--episodes=1")
    status, _, errors = run(line, s3)
    assert status == 0, errors
    RunFiles(Bucket(URL), "followed", evaluation()).fetch(tmp_path, lambda name: name == "eval.csv")
    (step,) = read_table(tmp_path / "eval.csv").steps
    assert step == list_checkpoints(files_of("followed"))[0].step
    assert run(line, s3)[0] == 0, "the next follower goes on"


def test_a_run_that_a_living_process_trains_is_not_taken(s3: S3Server) -> None:
    with start("--checkpoint-interval-minutes=0.005", xpid="held", s3=s3) as holder:
        until(holder, lambda line: "saved s3://" in line)
        status, _, errors = run(words("--total-steps=400", xpid="held"), s3)
        assert status == 2 and re.search(r"xpid = 'held': process \d+ on \S+ trains this run", errors), errors
        with start("--wait-for-run", xpid="held", s3=s3) as heir:
            until(heir, lambda line: "trains this run" in line and "waiting until it ends" in line)
            holder.terminate()
            assert holder.wait(TIMEOUT_S) == 0
            until(heir, lambda line: "resuming s3://" in line)
            heir.terminate()
            assert heir.wait(TIMEOUT_S) == 0


def test_a_learner_that_wakes_up_after_its_lease_ends_and_changes_nothing(s3: S3Server) -> None:
    interval = "--checkpoint-interval-minutes=0.005"
    with start(interval, xpid="asleep", s3=s3) as sleeper:
        until(sleeper, lambda line: "saved s3://" in line)
        os.kill(sleeper.pid, signal.SIGSTOP)
        try:
            before = list_checkpoints(files_of("asleep"))[0].step
            status, _, errors = run(words(f"--total-steps={before + 400}", xpid="asleep"), s3)
            assert status == 0 and "resuming" in errors, errors
            content = s3.content("runs/asleep/run.json")
        finally:
            os.kill(sleeper.pid, signal.SIGCONT)
        until(sleeper, lambda line: "was taken over by" in line)
        sleeper.stderr.read()
        assert sleeper.wait(TIMEOUT_S) == 1
    assert s3.content("runs/asleep/run.json") == content
    newest = list_checkpoints(files_of("asleep"))[0]
    assert load(files_of("asleep"), newest.file.name)["step"] == newest.step >= before + 400


def test_kills_and_faults_leave_whole_checkpoints_at_every_moment(s3: S3Server, tmp_path: Path) -> None:
    chance = random.Random(7)
    kinds: tuple[Fault, ...] = ("503", "cut", "lost answer")

    def choose(method: str, path: str) -> Fault:
        return chance.choice(kinds) if chance.random() < FAULT_SHARE else "none"

    files, steps = files_of("killed"), []
    with FaultyProxy(s3, lambda method, path: "none") as proxy:
        for _ in range(KILLS):
            proxy.choose = lambda method, path: "none"
            with start("--checkpoint-interval-minutes=0.002", xpid="killed", s3=proxy.server) as process:
                until(process, lambda line: "training on" in line)
                proxy.choose = choose
                saves = iter(range(chance.randint(2, 6)))
                until(process, lambda line: "saved s3://" in line and next(saves, None) is None)  # noqa: B023
                os.kill(process.pid, signal.SIGKILL)
            found = list_checkpoints(files)
            assert [load(files, saved.file.name)["step"] for saved in found] == [saved.step for saved in found]
            steps.append(found[0].step)
        assert steps == sorted(set(steps)), "every life trains on"
        assert proxy.num_faults >= 6 * KILLS
    status, _, errors = run(words(f"--total-steps={steps[-1] + 40}", xpid="killed"), s3)
    assert status == 0, errors
    rows = table("killed", tmp_path).steps
    assert list(rows) == sorted(set(rows)) and rows[-1] >= steps[-1] + 40
    keys = files.manifest().keys
    assert {key.removeprefix("runs/killed/run/") for key in s3.keys("runs/killed/run/")} == keys, "nothing else stays"


def test_a_store_that_fails_costs_no_update_and_gets_all_afterwards(s3: S3Server, tmp_path: Path) -> None:
    with FaultyProxy(s3, lambda method, path: "none") as proxy:
        flags = ("--checkpoint-interval-minutes=0.005", "--log-interval-s=0.1")
        with start(*flags, xpid="fails", s3=proxy.server) as process:
            first = step_of(until(process, lambda line: "saved s3://" in line))
            proxy.choose = lambda method, path: "503"
            while (last := step_of(until(process, lambda line: "not saved" in line))) < first + 1000:
                pass
            proxy.choose = lambda method, path: "none"
            until(process, lambda line: "saved s3://" in line)
            process.terminate()
            process.stderr.read()
            assert process.wait(TIMEOUT_S) == 0
    steps = table("fails", tmp_path).steps
    assert [step for step in steps if first < step < last], "rows of the outage are there"


def step_of(line: str) -> int:
    """Returns the step in a message about a checkpoint."""
    return int(re.findall(r"checkpoint(?:-| at step )(\d+)", line)[0])


@pytest.mark.parametrize("fault", ["403", "503"])
def test_a_store_that_does_not_answer_is_named_before_anything_else(fault: Fault, s3: S3Server) -> None:
    with FaultyProxy(s3, lambda method, path: fault) as proxy:
        status, _, errors = run(words("--total-steps=40", xpid="never"), proxy.server)
    assert status == 1 and re.search(rf"savedir = '{URL}': {URL}/never/run\.json: .*{fault}", errors), errors
    assert not s3.keys("runs/never")
