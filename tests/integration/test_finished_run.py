"""The env-servers of a finished run wait for the next one, and the end of the run counts as no failure."""

import grpc

from kubebeast_envserver.stream.exit_code import ExitCode
from tests.integration.envserver_learner import TIMEOUT_S, FakeLearner, learner, running, wait_for_log
from tests.integration.playing_pool import PlayingPool
from tests.integration.test_environment_faults import get, serving_port

FINISHED = (grpc.StatusCode.OUT_OF_RANGE, "the run is finished")


def test_an_env_server_that_was_to_play_some_steps_leaves_without_an_error() -> None:
    flags = ("--env", "Mock", "--max-steps", "3")
    with learner(refuse=FINISHED) as server, running(*flags, "--address", server.address) as process:
        assert "the run is finished" in wait_for_log(process, "nothing to play")
        assert process.wait(TIMEOUT_S) == ExitCode.OK


def test_an_env_server_is_ready_and_plays_the_next_run() -> None:
    flags = ("--env", "Mock", "--http-address", "127.0.0.1:0")
    with learner(refuse=FINISHED) as server, running(*flags, "--address", server.address) as process:
        port = serving_port(process)
        wait_for_log(process, "the run is finished")
        server.next("hello")  # the second try: the first one's end has been noted
        assert get(port, "/readyz") == (200, "ok\n")
        address = server.port
        server.stop()
        with learner(port=address) as next_run:
            assert isinstance(next_run, FakeLearner)
            next_run.next("observations")


def test_the_pool_of_a_finished_run_says_so() -> None:
    with PlayingPool() as pool:
        pool.native.drain(finished=True)
        with pool.env_server(max_steps=3) as stream:
            assert pool.verdict_on(stream) == ExitCode.OK
        assert stream.status.run_finished == 1
        assert stream.status.env_steps == 0
        assert pool.stat("streams_rejected") == 0
