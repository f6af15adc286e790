"""The metrics of an env-server that plays agree with its stream."""

import grpc

from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.envserver_learner import StreamThread, learner, running, zeros
from tests.integration.playing_pool import WELL_SPEC, PlayingPool
from tests.integration.test_environment_faults import MODULE, metrics, serving_port

P = "kubebeast_envserver_"
MAX_STEPS = 40


def test_steps_waits_games_and_bytes_are_those_that_the_learner_saw() -> None:
    answered: list[pb.ActResponse] = []

    def answer(hello: pb.Hello, observations: pb.Observations) -> pb.ActResponse:
        answered.append(zeros(hello, observations))
        return answered[-1]

    options = {"env": f"{MODULE}:Well-v0", "envs_per_stream": 2, "max_steps": MAX_STEPS}
    with learner(answer=answer) as server, StreamThread(address=server.address, **options) as stream:
        assert stream.join() == ExitCode.OK
        requests = [server.received.get() for _ in range(MAX_STEPS + 2)]  # Hello, and a row more than there are steps
    hello, status = requests[0].hello, stream.status
    games = sum(len(request.observations.episodes) for request in requests)
    assert counts(stream, "episodes_") == {"terminated": games}
    assert (sum(status.episode_lengths.counts), status.episode_lengths.sum) == (games, 3 * games)
    assert status.env_steps == 2 * MAX_STEPS - sum(sum(request.observations.is_first) for request in requests[2:])
    assert sum(status.step_seconds.counts) == sum(status.action_wait_seconds.counts) == MAX_STEPS
    assert status.step_seconds.sum > 0 and status.action_wait_seconds.sum > 0
    assert sum(status.reset_seconds.counts) >= games
    assert status.sent_bytes == sum(request.ByteSize() for request in requests)
    received = server.welcome(hello).ByteSize() + sum(response.ByteSize() for response in answered[:MAX_STEPS])
    assert status.received_bytes - received in (0, answered[-1].ByteSize())  # the answer to the last row may be unread


def test_a_scrape_shows_what_was_configured_and_what_is_played() -> None:
    flags = [f"--env={MODULE}:Well-v0", "--envs-per-stream=2", "--num-streams=2", "--http-address=127.0.0.1:0"]
    with learner() as server, running(*flags, f"--address={server.address}") as process:
        port = serving_port(process)
        while server.next("observations").step < 10:
            pass
        told = metrics(port)
        assert (told[P + "streams"], told[P + "envs"]) == (2, 4)
        assert told[P + "step_seconds_count"] >= 9
        assert told[P + 'step_seconds_bucket{le="+Inf"}'] == told[P + "step_seconds_count"]
        assert told[P + 'episodes_total{end="terminated"}'] >= 2 and told[P + "episode_return_mean"] == 3.0
        assert told[P + "sent_bytes_total"] > told[P + "received_bytes_total"] > 0
        (info,) = [name for name in told if name.startswith(P + "build_info")]
        assert f'env_id="{MODULE}:Well-v0"' in info
        assert told["process_resident_memory_bytes"] > 0


def test_a_refusal_is_counted_by_its_status() -> None:
    with (
        learner(refuse=(grpc.StatusCode.UNAUTHENTICATED, "the bearer token is wrong")) as server,
        StreamThread(env="Mock", address=server.address) as stream,
    ):
        assert stream.join() == ExitCode.REFUSED
    assert counts(stream, "disconnects_") == {"unauthenticated": 1}


def test_a_learner_that_goes_and_stays_away_is_counted_by_status() -> None:
    with learner() as server:
        stream = StreamThread(env="Mock", envs_per_stream=1, address=server.address, max_redials=1)
        server.next("observations")
    with stream:
        assert stream.join() == ExitCode.UNREACHABLE
    codes, status = counts(stream, "disconnects_"), stream.status
    assert codes.keys() <= {"unavailable", "cancelled"}
    assert sum(codes.values()) == status.connects_lost + status.connects_unreachable


def test_an_environment_that_fails_under_way_interrupts_its_game() -> None:
    flags = [f"--env={MODULE}:RaisesInStep-v0", "--envs-per-stream=1", "--max-failures=100"]
    with (
        PlayingPool(WELL_SPEC) as pool,
        running(*flags, f"--address={pool.address}", "--http-address=127.0.0.1:0") as process,
    ):
        port = serving_port(process)
        pool.play_until(lambda: pool.stat("env_interruptions") > 0)
        assert metrics(port)[P + 'episodes_total{end="interrupted"}'] >= 1


def counts(stream: StreamThread, prefix: str) -> dict[str, int]:
    """Returns the counts of a label's values that are not 0."""
    names = [field[0] for field in stream.status._fields_ if field[0].startswith(prefix)]
    return {name.removeprefix(prefix): count for name in names if (count := getattr(stream.status, name))}
