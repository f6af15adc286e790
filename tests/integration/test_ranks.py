"""Several learners under torchrun with real env-servers survive kills, starvation, stops and other numbers of ranks."""

import contextlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.ports import free_ports
from harness.processes.rank_training import EnvServer, Ranks
from harness.processes.training_process import TIMEOUT_S, checkpoint_steps, rows
from kubebeast_envserver.stream.learners import Learner, by_preference

pytestmark = pytest.mark.slow


def test_ranks_go_on_from_the_checkpoint_whenever_one_was_killed(tmp_path: Path) -> None:
    with (
        Ranks(tmp_path, 2, "--total-steps=100000000") as ranks,
        EnvServer(ranks.port) as first,
        EnvServer(ranks.port + 1) as second,
    ):
        saved = ranks.wait_for_message("saved .*checkpoint")
        for victim in (0, 1, 0):
            ranks.workers()[victim].kill()
            resumed = ranks.wait_for_message("resuming .*checkpoint", saved)
            saved = ranks.wait_for_message("saved .*checkpoint", resumed)

        assert len(ranks.workers()) == 2
        assert first.process.poll() is None
        assert second.process.poll() is None


def test_a_stop_request_of_one_rank_ends_all_with_one_checkpoint(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2, "--total-steps=100000000") as ranks, EnvServer(ranks.port), EnvServer(ranks.port + 1):
        ranks.wait_for_step(200)
        ranks.workers()[1].terminate()

        assert ranks.process.wait(TIMEOUT_S) == 0

    newest = rows(tmp_path / "run")[-1]
    assert checkpoint_steps(tmp_path / "run")[-1] == int(newest["step"])


def test_others_train_on_without_a_rank_that_has_lost_its_env_servers(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2, "--total-steps=100000000") as ranks, EnvServer(ranks.port):
        with EnvServer(ranks.port + 1):
            before = ranks.wait_for_share(1)
        starving = ranks.wait_for_message("the others train without this learner's share", before)
        step = next(line["step"] for line in reversed(ranks.lines[:starving]) if "step" in line)
        ranks.wait_for_step(step + 2000, starving)
        with EnvServer(ranks.port + 1):
            ranks.wait_for_message("this learner has its share of the updates again", starving)


def test_a_training_begins_although_no_env_server_has_dialed_one_of_its_ranks(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2, "--total-steps=100000000") as ranks, EnvServer(ranks.port):
        starving = ranks.wait_for_message("the others train without this learner's share")
        ranks.wait_for_step(2000, starving)
        with EnvServer(ranks.port + 1):
            ranks.wait_for_message("this learner has its share of the updates again", starving)


def test_a_rank_is_healthy_while_it_waits_for_one_that_does_not_answer(tmp_path: Path) -> None:
    http_port = free_ports(2)
    flags = ["--total-steps=100000000", f"--http-address=127.0.0.1:{http_port}", "--rank-timeout-s=15"]
    with (
        Ranks(tmp_path, 2, *flags, module="tests.integration.impatient_learner") as ranks,
        EnvServer(ranks.port),
        EnvServer(ranks.port + 1),
    ):
        ranks.wait_for_step(200)
        frozen = ranks.workers()[1]
        frozen.suspend()
        answers: set[str] = set()
        with contextlib.suppress(ConnectionError, urllib.error.URLError):
            while not any("another rank is gone" in line["message"] for line in ranks.lines):
                answers.add(health(http_port))
        frozen.resume()
        ranks.wait_for_message("another rank is gone")

    assert answers == {""}


def health(port: int) -> str:
    """Returns the problem of the learner with HTTP on `port`, "" for none; raises the connection's error if none
    serves.
    """
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=TIMEOUT_S):
            return ""
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_a_checkpoint_does_not_depend_on_the_number_of_ranks(tmp_path: Path) -> None:
    total = 0
    for num_ranks in (1, 2, 4, 1):
        total += 800
        with contextlib.ExitStack() as stack:
            ranks = stack.enter_context(Ranks(tmp_path, num_ranks, f"--total-steps={total}"))
            for index in range(num_ranks):
                stack.enter_context(EnvServer(ranks.port + index))
            assert ranks.process.wait(TIMEOUT_S) == 0, ranks.text()
        step = checkpoint_steps(tmp_path / "run")[-1]
        assert total <= step <= total + 40 * num_ranks


def test_machines_join_a_training_and_leave_it(tmp_path: Path) -> None:
    """Two agents of torchrun with a rank each, as two pods: the second comes and goes.

    They begin as soon as both are there. One alone waits for the other for the last call's timeout, which must leave
    the other time for a poll or two, of a second each, on a busy machine too.
    """
    where = f"--rdzv-endpoint=127.0.0.1:{free_ports(1)}"

    def machine(number: int) -> Ranks:
        is_host = str(number == 1).lower()
        conf = f"--rdzv-conf=is_host={is_host},last_call_timeout=6"
        own = ("--nnodes=1:2", where, conf, f"--local-addr=127.0.0.{number}", "--rdzv-id=training")
        folder = tmp_path / f"volume{number}"  # as pods have of their own
        return Ranks(folder, 1, "--total-steps=100000000", rendezvous=own)

    with machine(1) as first, EnvServer(first.port):
        seen = first.wait_for_message("saved .*checkpoint")
        with machine(2) as second, EnvServer(second.port):
            seen = first.wait_for(lambda line: line.get("rank") == "0" and "resuming" in line["message"], seen)
            seen = first.wait_for_message("saved .*checkpoint", seen)
            second.terminate()
        seen = first.wait_for_message("a rank elsewhere was asked to stop", seen)
        first.wait_for(lambda line: "rank" not in line and "resuming" in line["message"], seen)
        first.terminate()


def test_streams_spread_over_the_ranks_and_again_over_another_number_of_them(tmp_path: Path) -> None:
    """2 ranks, then 1, then 2, for streams that are never restarted."""
    port, num_streams = free_ports(4), 6
    http_port = port + 2
    flags = ("--total-steps=100000000", f"--http-address=127.0.0.1:{http_port}")
    spread = EnvServer(f"{port}-{port + 1}", f"--num-streams={num_streams}", "--env-server-id=spread")
    with spread, EnvServer(port), EnvServer(port + 1):  # so that no rank waits for its first stream
        for num_ranks in (2, 1, 2):
            with Ranks(tmp_path, num_ranks, *flags, port=port) as ranks:
                learners = [Learner(f"127.0.0.1:{port + rank}") for rank in range(num_ranks)]
                wait_until_spread(ranks, learners, http_port, num_streams)
                ranks.wait_for_message("saved .*checkpoint")
                ranks.terminate()
        assert spread.process.poll() is None


def wait_until_spread(ranks: Ranks, learners: Sequence[Learner], http_port: int, num_streams: int) -> None:
    """Waits until every stream of the env-server "spread" is with the learner that it prefers."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        names = [instances(http_port + rank) for rank in range(len(learners))]
        chosen = [[by_preference(name, learners)[0] for name in of_rank] for of_rank in names]
        at_home = all(set(of_rank) <= {learner} for of_rank, learner in zip(chosen, learners, strict=True))
        if at_home and sum(map(len, names)) == num_streams:
            return
        assert time.monotonic() < deadline, f"the streams of each rank: {names}\n{ranks.text()}"
        time.sleep(0.2)


def instances(port: int) -> list[str]:
    """Returns the instances of the streams of "spread" at the rank that serves HTTP on that port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/streams", timeout=TIMEOUT_S) as page:
            streams = json.load(page)["streams"]
    except (OSError, http.client.HTTPException):  # a connection to an unused port may reach itself
        return []
    return [stream["instance_id"] for stream in streams if stream["env_server_id"] == "spread"]
