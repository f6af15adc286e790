"""Learners of several runs share one fleet of env-servers through a broker, with real processes of all three."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.certificates import issue, make_ca
from harness.chaos.books import imbalance
from harness.processes.broker_process import BrokerProcess, playing
from harness.processes.env_server import EnvServer
from harness.processes.learner_process import LearnerProcess

LEARNER = ("--unroll-length=5", "--batch-size=2", "--log-interval-s=0.2", "--learner-threads=1", "--compile=off")
ENV = {"env_ms": 100.0, "max_length": 10}
"""Environments are so slow that learners can use any number of them."""
FREED_WITHIN_S = 5.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path) as process:
        yield process


def learner(broker: BrokerProcess, folder: Path, run: str, *flags: str) -> LearnerProcess:
    own = folder / f"learner-{run}"
    own.mkdir(exist_ok=True)
    return LearnerProcess(own, *LEARNER, f"--broker={broker.address}", *flags, xpid=run, warm=True)


def env_server(broker: BrokerProcess, folder: Path, place: int, num_streams: int, *flags: str) -> EnvServer:
    flags = (f"--num-streams={num_streams}", *flags)
    return EnvServer(place, f"broker:{broker.address}", folder, *flags, num_envs=1, env_kwargs=ENV)


@contextlib.contextmanager
def two_runs(broker: BrokerProcess, folder: Path) -> Iterator[tuple[LearnerProcess, LearnerProcess]]:
    """Runs learners of "one", with weight 1, and "two", with weight 2, on six streams; yields once all of them play."""
    with (
        learner(broker, folder, "one") as one,
        learner(broker, folder, "two", "--broker-weight=2") as two,
    ):
        broker.wait_until(lambda fleet: playing(fleet) == {"one": 0, "two": 0})
        with env_server(broker, folder, 0, 6):
            broker.wait_until(lambda fleet: playing(fleet) == {"one": 2, "two": 4})
            yield one, two


def test_env_servers_without_a_certificate_play_with_a_learner_that_verifies_its_broker(tmp_path: Path) -> None:
    authority, token = make_ca(tmp_path), tmp_path / "token"
    own = issue(authority, tmp_path, "own")
    token.write_text("s3cret-of-the-test")
    access = (f"--tls-cert={own.cert}", f"--tls-key={own.key}", f"--token-file={token}")
    dialing = (f"--token-file={token}", f"--tls-ca={authority.pem}")
    with (
        BrokerProcess(tmp_path, *access) as broker,
        learner(broker, tmp_path, "one", *access, f"--broker-tls-ca={authority.pem}") as one,
        env_server(broker, tmp_path, 0, 2, *dialing),
    ):
        broker.wait_until(lambda fleet: playing(fleet) == {"one": 2})
        one.wait_for_steps(20)


def num_lost(broker: BrokerProcess) -> float:
    """Returns the number of learners that the broker has lost."""
    found = re.search(r"^kubebeast_broker_learners_lost_total (\S+)", broker.metrics(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_streams_of_a_killed_learner_play_for_others_and_come_back_with_it(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with two_runs(broker, tmp_path) as (one, two):
        two.wait_for_steps(20)
        two.kill()
        broker.wait_until(lambda fleet: playing(fleet).get("one") == 6, FREED_WITHIN_S)
        one.wait_for_steps(20)
        assert imbalance(one.books()) == 0
        broker.wait_until(lambda _: num_lost(broker) >= 1)  # more if the machine is busy
        assert re.search("run two loses its learner at .* its connection broke", broker.log_path.read_text())
        two.start()
        broker.wait_until(lambda fleet: playing(fleet).get("two", 0) >= 4)
        two.wait_for_steps(20)
        assert imbalance(one.books()) == imbalance(two.books()) == 0


def test_a_run_that_ends_frees_its_streams(broker: BrokerProcess, tmp_path: Path) -> None:
    with two_runs(broker, tmp_path) as (one, two):
        assert one.terminate() == 0
        broker.wait_until(lambda fleet: playing(fleet) == {"two": 6}, FREED_WITHIN_S)
        assert re.search("run one loses its learner at .* it has ended", broker.log_path.read_text())
        two.wait_for_steps(20)


def test_a_finished_run_that_lingers_frees_its_streams(broker: BrokerProcess, tmp_path: Path) -> None:
    with (
        learner(broker, tmp_path, "long") as long,
        learner(broker, tmp_path, "short", "--total-steps=100", "--linger") as short,
        env_server(broker, tmp_path, 0, 2),
    ):
        broker.wait_until(lambda fleet: set(playing(fleet)) == {"long", "short"})
        broker.wait_until(lambda fleet: playing(fleet) == {"long": 2})
        assert short.is_running
        long.wait_for_steps(20)
        assert broker.log_path.read_text().count("run short has a learner") == 1


def test_the_fleet_may_shrink_and_grow(broker: BrokerProcess, tmp_path: Path) -> None:
    with two_runs(broker, tmp_path) as (one, two):
        with env_server(broker, tmp_path, 1, 6):
            broker.wait_until(lambda fleet: playing(fleet) == {"one": 4, "two": 8})
        broker.wait_until(lambda fleet: playing(fleet) == {"one": 2, "two": 4})
        for each in (one, two):
            each.wait_for_steps(20)
            assert imbalance(each.books()) == 0


def test_streams_play_on_without_a_broker_and_keep_their_learners_with_a_new_one(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with two_runs(broker, tmp_path) as (one, two):
        broker.kill()
        for each in (one, two):
            each.wait_for_steps(50)
            assert each.newest["streams"] > 0
        broker.start()
        broker.wait_until(lambda fleet: playing(fleet) == {"one": 2, "two": 4})
        books = one.books(), two.books()
        assert [counts["steps_dropped_partial"] for counts in books] == [0, 0]
        assert "kubebeast_broker_moves_total 0.0" in broker.metrics()


def test_without_a_broker_a_stream_of_a_dead_learner_plays_for_one_that_it_knows(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with learner(broker, tmp_path, "one") as one, env_server(broker, tmp_path, 0, 1) as server:
        broker.wait_until(lambda fleet: playing(fleet) == {"one": 1})
        with learner(broker, tmp_path, "two", "--broker-weight=1000") as two:
            broker.wait_until(lambda fleet: playing(fleet) == {"one": 0, "two": 1})
            broker.kill()
            two.kill()
            one.wait_until(lambda values: values["streams"] == 1)
            assert server.exit_status() is None


def test_a_learner_with_other_shapes_gets_no_streams_and_ends_none(broker: BrokerProcess, tmp_path: Path) -> None:
    other = EnvServer(1, f"broker:{broker.address}", tmp_path, "--run=other", num_envs=1, env="MountainCar-v0")
    with (
        learner(broker, tmp_path, "other") as misfit,
        other,
    ):
        broker.wait_until(lambda fleet: playing(fleet) == {"other": 1})
        misfit.wait_for_steps(20)
        with learner(broker, tmp_path, "fitting") as fitting, env_server(broker, tmp_path, 0, 4) as server:
            fleet = broker.wait_until(lambda fleet: playing(fleet) == {"other": 1, "fitting": 4})
            assert {stream["refused_by"] for stream in fleet["streams"] if stream["playing"] == "fitting"} <= {0, 1}
            fitting.wait_for_steps(20)
            assert server.exit_status() is None


def test_stream_seconds_follow_weights_that_do_not_divide_the_fleet(broker: BrokerProcess, tmp_path: Path) -> None:
    with learner(broker, tmp_path, "one"), learner(broker, tmp_path, "two"), env_server(broker, tmp_path, 0, 3):
        moves = broker.wait_until(lambda fleet: "kubebeast_broker_moves_total 2.0" in broker.metrics())
        assert {run["run_id"]: run["share"] for run in moves["runs"]} == {"one": 1.5, "two": 1.5}


def test_an_env_server_waits_for_a_run_and_leaves_after_max_steps(broker: BrokerProcess, tmp_path: Path) -> None:
    with env_server(broker, tmp_path, 0, 1, "--max-steps=5") as server:
        broker.wait_until(lambda fleet: len(fleet["streams"]) == 1)
        with learner(broker, tmp_path, "late"):
            assert server.wait() == 0
