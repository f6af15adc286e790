"""Programs in C++ and C, built outside of the repository's own builds, play with a real learner."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import kubebeast_native as native
from harness.certificates import issue, make_ca
from harness.client_library import BUILD_TIMEOUT_S, ROOT, Kind, built_against, installed_client
from harness.processes.training_process import TIMEOUT_S
from tests.integration.playing_pool import WELL_SPEC, PlayingPool
from tests.integration.test_learner_command import Learner, env_server, learner

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_TIMEOUT_S + 3 * TIMEOUT_S)]

EXAMPLES = ROOT / "examples"
SYMBOLS_OF_ITS_OWN = ("kubebeast",)

CARTPOLE = native.EnvSpec(
    "CartPole-v1",
    observation=[native.LeafSpec("", "float32", (4,))],
    action=[native.LeafSpec("", "int64", (), num_categories=2)],
)
CATCH = native.EnvSpec(
    "Catch-v0",
    observation=[native.LeafSpec("", "float32", (10, 5))],
    action=[native.LeafSpec("", "int64", (), num_categories=3)],
)
CARTPOLES_LONGEST = 500
"""Steps of an episode."""
FLOAT32 = 1e-5
"""Tolerance above the float32 rounding of a step that gymnasium computes with float64."""
VERSION_IN_C = "#include <kubebeast_client.h>\nint main(void) { return kubebeast_code_name(KUBEBEAST_OK)[0] != 111; }\n"


@pytest.fixture
def client() -> Path:
    return installed_client("shared")


@contextlib.contextmanager
def playing(program: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Yields a running program, which must end with status 0 at SIGTERM."""
    process = subprocess.Popen([program, *arguments], stderr=subprocess.PIPE, text=True)
    try:
        yield process
        assert process.poll() is None, "it has ended by itself"
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def cartpole(client: Path, tmp_path: Path) -> Path:
    """The program in C."""
    return built_against(client, EXAMPLES / "c_cartpole", tmp_path / "cartpole") / "cartpole"


def test_cartpole_in_c_trains_beside_gymnasiums(cartpole: Path, tmp_path: Path) -> None:
    with (
        learner(tmp_path) as running,
        env_server("--env=CartPole-v1", f"--address={running.address}", "--envs-per-stream=1"),
        playing(cartpole, running.address),
    ):
        while [episodes > 1 for episodes in episodes_of_streams(running)] != [True, True]:
            running.wait_for_snapshot()
        snapshot = running.wait_for_snapshot(num_updates=1)
        assert (snapshot["env_failures"], snapshot["num_skipped_updates"]) == (0, 0)


def test_numbers_of_a_program_reach_the_learners_log(client: Path, tmp_path: Path) -> None:
    catch = built_against(client, EXAMPLES / "cpp_catch", tmp_path / "catch") / "catch"
    with learner(tmp_path, "--log-info", "caught", "depth") as running, playing(catch, running.address):
        snapshot = running.wait_for_snapshot(episodes=1)
        assert 0 <= snapshot["info/caught"] <= 1
        assert snapshot["info/caught"] == pytest.approx((snapshot["mean_episode_return"] + 1) / 2)
        assert snapshot["info/depth"] is None


def episodes_of_streams(running: Learner) -> list[int]:
    return [stream["episodes"] for stream in json.loads(running.ask("/streams")[1])["streams"]]


def test_cartpole_in_c_is_gymnasiums_step_for_step(cartpole: Path) -> None:
    ends, length = set[str](), 0
    with PlayingPool(CARTPOLE) as pool, playing(cartpole, pool.address):

        def policy(batch: native.InferenceBatch) -> NDArray[np.int64]:
            """Balances until an episode has reached its full length, then no longer."""
            x, x_dot, theta, theta_dot = batch.observation[0].T
            leaning = x + x_dot + 10 * theta + 3 * theta_dot
            return np.array((leaning > 0) & ("truncated" not in ends), np.int64)

        for unroll in pool.unrolls(policy):
            for t in np.flatnonzero(unroll.valid[:, 0]):
                before, after = unroll.observation[0][t : t + 2, 0]
                if unroll.is_first[t, 0]:
                    length = 0
                    assert np.abs(before).max() <= 0.05
                length += 1
                state, terminated = gymnasiums_step(before, int(unroll.actions[0][t, 0]))
                np.testing.assert_allclose(after, state, rtol=FLOAT32, atol=FLOAT32)
                assert unroll.rewards[t + 1, 0] == 1.0
                assert unroll.terminated[t + 1, 0] == terminated
                assert unroll.truncated[t + 1, 0] == (length == CARTPOLES_LONGEST and not terminated)
                ends |= {name for name in ("terminated", "truncated") if getattr(unroll, name)[t + 1, 0]}
            if len(ends) == 2:
                break


def test_every_episode_of_catch_is_of_its_level_the_first_one_too(client: Path, tmp_path: Path) -> None:
    catch = built_against(client, EXAMPLES / "cpp_catch", tmp_path / "catch") / "catch"
    num_episodes = 0
    with PlayingPool(CATCH, episode_options=True) as pool:
        pool.native.push_episode_options(['{"column": 3}'])  # repeated, as no others come
        with playing(catch, pool.address, "2"):
            for unroll in pool.unrolls(lambda batch: np.zeros(batch.num_rows, np.int64)):
                for t in np.flatnonzero(unroll.is_first[:, 0]):
                    assert np.flatnonzero(unroll.observation[0][t, 0, 0]).tolist() == [3]
                    num_episodes += 1
                if num_episodes > 4:
                    break
        assert {episode.options for episode in pool.native.take_episodes()} == {'{"column": 3}'}


def test_a_program_that_takes_no_levels_leaves_a_run_that_chooses_them(cartpole: Path) -> None:
    with PlayingPool(CARTPOLE, episode_options=True) as pool:
        pool.native.push_episode_options(['{"gravity": 1}'])
        ended = subprocess.run([cartpole, pool.address], capture_output=True, text=True, timeout=TIMEOUT_S)
        assert ended.returncode == 3
        assert "refused: this run chooses the level of each episode" in ended.stderr
        assert pool.stat("rows_received") == 0


def gymnasiums_step(before: NDArray[np.generic], action: int) -> tuple[NDArray[np.float32], bool]:
    """Returns gymnasium's state after a step from there, and True if the pole has fallen."""
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset()
    env.state = before.astype(np.float64)  # type: ignore[attr-defined]
    after, _, terminated, _, _ = env.step(action)
    return after, terminated


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_another_project_finds_the_package(kind: Kind, tmp_path: Path) -> None:
    client = installed_client(kind)
    for name, program in (("cpp_catch", "catch"), ("c_cartpole", "cartpole")):
        if kind == "static" and name == "c_cartpole":
            continue  # a static library in C++ needs a C++ compiler to link
        built = built_against(client, EXAMPLES / name, tmp_path / name) / program
        assert subprocess.run([built], capture_output=True, timeout=TIMEOUT_S).returncode == 2, "its usage"


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_pkg_config_tells_a_compiler_all_it_needs(kind: Kind, tmp_path: Path) -> None:
    client = installed_client(kind)
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(VERSION_IN_C)
    (libraries,) = client.glob("lib*")
    variables = {
        **os.environ,
        "PKG_CONFIG_PATH": str(next(client.rglob("pkgconfig"))),
        "LD_LIBRARY_PATH": str(libraries),
    }
    words = ["pkg-config", "--cflags", "--libs", "kubebeast_client", *(["--static"] if kind == "static" else [])]
    flags = subprocess.run(words, env=variables, capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["cc", "-std=c11", source, "-o", program, *flags], check=True, timeout=TIMEOUT_S)

    assert subprocess.run([program], env=variables, timeout=TIMEOUT_S).returncode == 0


def play_by_the_c_interface(client: Path, tmp_path: Path, **texts: object) -> str:
    """Plays 20 steps with a pool that demands a certificate and a token; returns the name of the last code."""
    ca = make_ca(tmp_path)
    listener, dialer = issue(ca, tmp_path, "listener"), issue(ca, tmp_path, "dialer")
    (tmp_path / "token").write_text("secret")
    security = {"tls_cert": str(listener.cert), "tls_key": str(listener.key), "tls_ca": str(ca.pem)}
    with PlayingPool(WELL_SPEC, token_file=str(tmp_path / "token"), **security) as pool:
        own = {"tls_authorities": ca.pem, "tls_certificate": dialer.cert, "tls_key": dialer.key}
        options = {"address": pool.address, **own, "token_file": tmp_path / "token", **texts}
        library = next(client.rglob("libkubebeast_client.so"))
        words = [sys.executable, "-m", "tests.integration.c_interface", str(library), "20"]
        words += [f"{name}={value}" for name, value in options.items()]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            pool.play_until(lambda: process.poll() is not None)
            assert process.stdout is not None
            return process.stdout.read().strip()


def test_another_language_plays_by_the_c_interface_with_tls_and_a_token(client: Path, tmp_path: Path) -> None:
    assert play_by_the_c_interface(client, tmp_path) == "ok"


def test_a_wrong_token_is_refused(client: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    assert play_by_the_c_interface(client, tmp_path, token_file=tmp_path / "other") == "refused"


def test_the_shared_library_exports_nothing_but_its_own(client: Path) -> None:
    library = next(client.rglob("libkubebeast_client.so"))
    words = ["nm", "--dynamic", "--defined-only", "--demangle", "--format=just-symbols", str(library)]
    symbols = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()

    assert [symbol for symbol in symbols if not symbol.startswith(SYMBOLS_OF_ITS_OWN)] == []
