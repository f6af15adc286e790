"""An env-server exports metrics to Prometheus from the shared memory of its streams."""

import multiprocessing
from collections.abc import Sequence

import grpc
import numpy as np
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kubebeast_common.access.tls_files import TlsError
from kubebeast_common.histogram import LENGTH_BOUNDS, NUM_NEWEST, SECONDS_BOUNDS, LengthHistogram, Newest
from kubebeast_envserver.faults.watched_env import WatchedEnv
from kubebeast_envserver.metrics import ENVSERVER, make_registry
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, StepRows, WithoutOptions
from kubebeast_envserver.rows.stream_status import (
    CONNECT_OUTCOMES,
    EPISODE_ENDS,
    FAILURE_KINDS,
    GRPC_CODES,
    StreamStatus,
)
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_envserver.stream.connection import DisconnectedError, RefusedError, code_name
from tests.unit.envserver.envs.scripted_env import ACTION, OBSERVATION

P = "kubebeast_envserver_"


def samples(*statuses: StreamStatus) -> dict[str, float]:
    """Returns samples by name and label values; buckets by their bound."""
    text = generate_latest(make_registry(statuses, lambda: 3, env_id="Pong-v5", envs_per_stream=4)).decode()
    return {
        "/".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_metric_is_told_of_without_any_stream() -> None:
    families = {family.name: family for family in make_registry([], lambda: 0).collect()}
    assert {row.name for row in ENVSERVER} | {"process_cpu_seconds"} <= families.keys()
    assert all(family.documentation.endswith(".") for name, family in families.items() if name.startswith(P))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("episodes_total", EPISODE_ENDS),
        ("env_failures_total", FAILURE_KINDS),
        ("connects_total", CONNECT_OUTCOMES),
        ("disconnects_total", GRPC_CODES),
    ],
)
def test_all_values_of_a_label_are_there_from_the_start(name: str, values: Sequence[str]) -> None:
    found = {key: value for key, value in samples(StreamStatus()).items() if key.startswith(f"{P}{name}/")}
    assert found == {f"{P}{name}/{value}": 0.0 for value in values}


def test_codes_are_those_of_grpc() -> None:
    by_number = sorted(grpc.StatusCode, key=lambda code: code.value[0])
    assert list(GRPC_CODES) == [code.name.lower() for code in by_number]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DisconnectedError("gone", grpc.StatusCode.RESOURCE_EXHAUSTED), "resource_exhausted"),
        (DisconnectedError("the connection broke"), "unavailable"),
        (RefusedError("no", grpc.StatusCode.UNAUTHENTICATED), "unauthenticated"),
        (ProtocolError("nonsense"), "invalid_argument"),
        (TlsError("no such file"), "unavailable"),
    ],
)
def test_every_end_of_a_connection_has_a_code(error: Exception, code: str) -> None:
    assert code_name(error) == code


def test_streams_are_summed() -> None:
    first, second = StreamStatus(), StreamStatus()
    first.env_steps, second.env_steps = 2**40, 1
    first.connected = 1
    first.count_disconnect("unavailable")
    second.count_disconnect("unavailable")
    first.count_episode("terminated", 10.0, 9)
    second.count_episode("truncated", -4.0, 100)
    told = samples(first, second)
    assert (told[P + "streams"], told[P + "envs"]) == (2, 8)
    assert (told[P + "streams_connected"], told[P + "streams_quarantined"]) == (1, 3)
    assert told[P + "env_steps_total"] == 2**40 + 1
    assert told[P + "disconnects_total/unavailable"] == 2
    assert (told[P + "episodes_total/terminated"], told[P + "episodes_total/truncated"]) == (1, 1)
    assert told[P + "episode_return_mean"] == 3.0
    assert (told[P + "episode_length_steps_count"], told[P + "episode_length_steps_sum"]) == (2, 109)


def test_a_mean_of_nothing_is_left_out() -> None:
    assert P + "episode_return_mean" not in samples(StreamStatus())


def test_buckets_are_cumulative_and_a_value_on_a_bound_belongs_below_it() -> None:
    status = StreamStatus()
    for seconds in (0.001, 0.0011, 61.0):
        status.step_seconds.observe(seconds)
    told = samples(status, StreamStatus())
    name = P + "step_seconds_bucket"
    assert [told[f"{name}/{bound}"] for bound in ("0.0005", "0.001", "0.0025", "60.0", "+Inf")] == [0, 1, 2, 2, 3]
    assert told[P + "step_seconds_sum"] == pytest.approx(61.0021)


def test_the_longest_episode_has_a_bucket() -> None:
    histogram = LengthHistogram()
    for length in (1, 2, 131_072, 131_073, 10**9):
        histogram.observe(length)
    assert LENGTH_BOUNDS[-1] == 131_072
    assert list(histogram.counts)[:2] == [1, 1] and list(histogram.counts)[-2:] == [1, 2]


def test_bounds_ascend() -> None:
    assert list(SECONDS_BOUNDS) == sorted(set(SECONDS_BOUNDS)) and len(SECONDS_BOUNDS) == 20


def test_only_the_newest_values_are_kept() -> None:
    newest = Newest()
    newest.add(-1.0)
    assert newest.values() == [-1.0]
    for value in range(NUM_NEWEST):
        newest.add(value)
    assert sorted(newest.values()) == list(range(NUM_NEWEST))


def test_names_of_any_script_fit_into_shared_memory() -> None:
    status: StreamStatus = multiprocessing.get_context("spawn").RawValue(StreamStatus)
    assert (status.run_id, status.instance_id) == ("", "")
    status.run_id = "𝄞" * 253
    status.instance_id = "0123456789abcdef" * 2 + "-12"
    assert (status.run_id, status.instance_id) == ("𝄞" * 253, "0123456789abcdef" * 2 + "-12")


class Film(WithoutOptions):
    """A HostedEnv of two environments that plays the given rows, then fails."""

    def __init__(self, *rows: StepRows) -> None:
        self.spec_observation, self.spec_action = [OBSERVATION], [ACTION]
        self.num_envs, self.num_agents = 2, 1
        self.takes_turns = False
        self._rows = iter(rows)

    def reset(self) -> StepRows:
        return next(self._rows)

    def step(self, actions: list[Array]) -> StepRows:
        for rows in self._rows:
            return rows
        raise EnvironmentFailure("the film is over")

    def close(self) -> None:
        pass


def rows(
    terminated: Sequence[int] = (), truncated: Sequence[int] = (), first: Sequence[int] = (), broken: Sequence[int] = ()
) -> StepRows:
    """Returns rows of two environments; arguments are indices.

    broken: environments with rows that only keep their places. Final rows of the others end a game.
    """

    def marked(envs: Sequence[int]) -> Array:
        return np.isin(np.arange(2), list(envs))

    interrupted = marked(broken) & ~marked(first)
    return StepRows(
        observation=[np.zeros((2, 3), np.float32)],
        rewards=np.zeros(2, np.float32),
        terminated=marked(terminated),
        truncated=marked(truncated) | interrupted,
        is_first=marked(first),
        episodes=[(env, 5.0, 7) for env in [*terminated, *truncated]],
        interrupted=interrupted,
        failures=[(env, "on fire") for env in broken],
    )


def episodes(status: StreamStatus) -> dict[str, int]:
    return {end: getattr(status, f"episodes_{end}") for end in EPISODE_ENDS}


def test_games_are_counted_by_how_they_ended() -> None:
    status = StreamStatus()
    film = Film(rows(first=[0, 1]), rows(terminated=[0]), rows(first=[0], truncated=[1]), rows(first=[1]))
    env = WatchedEnv(film, status)
    env.reset()
    for _ in range(3):
        env.step([])
    assert episodes(status) == {"terminated": 1, "truncated": 1, "interrupted": 0}
    assert (status.env_steps, list(status.episode_returns.values())) == (4, [5.0, 5.0])
    assert sum(status.step_seconds.counts) == 3


def test_a_game_is_interrupted_once_however_long_its_environment_stays_broken() -> None:
    status = StreamStatus()
    away = [rows(broken=[1]), rows(first=[1], broken=[1]), rows(broken=[1]), rows(first=[1], terminated=[0])]
    env = WatchedEnv(Film(rows(first=[0, 1]), *away), status)
    env.reset()
    for _ in away:
        env.step([])
    assert episodes(status) == {"terminated": 1, "truncated": 0, "interrupted": 1}
    assert status.env_steps == 4


def test_an_environment_that_breaks_between_games_interrupts_none() -> None:
    status = StreamStatus()
    film = [rows(terminated=[1]), rows(first=[1], broken=[1]), rows(broken=[1]), rows(first=[1], broken=[1])]
    env = WatchedEnv(Film(rows(first=[0, 1]), *film), status)
    env.reset()
    for _ in film:
        env.step([])
    assert episodes(status)["interrupted"] == 0


def test_an_environment_that_breaks_in_the_first_reset_interrupts_no_game() -> None:
    status = StreamStatus()
    env = WatchedEnv(Film(rows(first=[0, 1], broken=[1]), rows(broken=[1])), status)
    env.reset()
    env.step([])
    assert (episodes(status)["interrupted"], status.env_steps) == (0, 1)


def test_environments_that_fail_together_lose_the_games_under_way() -> None:
    status = StreamStatus()
    env = WatchedEnv(Film(rows(first=[0, 1]), rows(terminated=[0])), status)
    env.reset()
    env.step([])
    with pytest.raises(EnvironmentFailure, match="the film is over"):
        env.step([])
    assert episodes(status) == {"terminated": 1, "truncated": 0, "interrupted": 1}
    assert status.busy_since == 0.0
