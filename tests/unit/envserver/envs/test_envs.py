"""Vectors of environments are made by id, reset themselves, stack frames and keep account of episodes."""

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kubebeast_common.spec.leaves import Leaf
from kubebeast_common.user_code import message
from kubebeast_envserver.envs.factory import (
    EnvironmentFailure,
    FaultPolicy,
    HostedEnv,
    StepRows,
    find_action_meanings,
    make_vector_env,
)

FAULTS = "tests.integration.envserver_faults"
SECOND_CONSTRUCTOR_WORKS = """
import gymnasium
from kubebeast_envserver.catch import Catch
class Moody(Catch):
    num_made = 0
    def __init__(self):
        Moody.num_made += 1
        if Moody.num_made == 1:
            raise OSError("the licence server is away")
        super().__init__()
gymnasium.register("Moody-v0", entry_point=Moody)
"""
NAMES_ITS_ACTIONS = """
import gymnasium
from kubebeast_envserver.catch import Catch
class Named(Catch):
    def get_action_meanings(self):
        return ["LEFT", "STAY", "RIGHT"]
if "Named-v0" not in gymnasium.registry:
    gymnasium.register("Named-v0", entry_point=Named)
"""
PANICS = """
import itertools
import gymnasium
from kubebeast_envserver.catch import Catch
class Panic(BaseException):  # as environments in Rust raise it
    pass
class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")
class ExitsInText(Exception):
    def __str__(self):
        raise SystemExit(7)
class Counted(Exception):
    numbers = itertools.count()
    def __str__(self):
        return f"number {next(self.numbers)}"
ERRORS = {
    "panic": Panic("index out of\\nbounds"),
    "interrupt": KeyboardInterrupt(),
    "unprintable": Unprintable(),
    "exits in text": ExitsInText(),
    "control characters": ValueError("\\x1b[2J \\0"),
    "counted": Counted(),
    "exit": SystemExit(0),
    "long": ValueError("x" * 1_000_000),
}
class Panics(Catch):
    def __init__(self, where, error):
        self.where, self.error = where, ERRORS[error]
        super().__init__()
        self.fail("constructor")
    def fail(self, where):
        if self.where == where:
            raise self.error
    def reset(self, **kwargs):
        self.fail("reset")
        return super().reset(**kwargs)
    def step(self, action):
        self.fail("step")
        return None if self.where == "close" else super().step(action)
    def close(self):
        self.fail("close")
if "Panics-v0" not in gymnasium.registry:
    gymnasium.register("Panics-v0", entry_point="panics:Panics")
"""
UNUSUAL = ["panic", "interrupt", "unprintable", "exits in text", "control characters", "exit", "long"]
CATCH = "kubebeast_envserver.catch:Catch-v0"


def play(env: HostedEnv, num_steps: int, seed: int = 0) -> list[StepRows]:
    """Plays a reset and `num_steps` random steps."""
    rng = np.random.default_rng(seed)
    rows = [env.reset()]
    for _ in range(num_steps):
        actions = [
            rng.integers(leaf.num_categories, size=(env.num_envs, *leaf.shape))
            if leaf.num_categories
            else rng.uniform(-1, 1, (env.num_envs, *leaf.shape)).astype(leaf.dtype)
            for leaf in env.spec_action
        ]
        rows.append(env.step(actions))
    return rows


@pytest.mark.parametrize(
    ("env_id", "num_steps"),
    [
        ("Mock", 2100),
        ("CartPole-v1", 300),
        ("Pendulum-v1", 450),
        (CATCH, 60),
        ("PongNoFrameskip-v4", 1100),
        ("BreakoutNoFrameskip-v4", 600),
        ("ALE/Breakout-v5", 600),
    ],
)
def test_is_first_follows_final_rows_and_nothing_else(env_id: str, num_steps: int) -> None:
    env = make_vector_env(env_id, 3, seed=1)
    final = np.ones(3, np.bool_)
    num_final = 0
    for rows in play(env, num_steps):
        np.testing.assert_array_equal(rows.is_first, final)
        final = rows.terminated | rows.truncated
        num_final += int(final.sum())
        assert not (rows.is_first & final).any()
        assert not rows.rewards[rows.is_first].any()
        assert {rows.terminated.dtype, rows.truncated.dtype, rows.is_first.dtype} == {np.dtype(np.bool_)}
        assert rows.rewards.dtype == np.float32
        for leaf, array in zip(env.spec_observation, rows.observation, strict=True):
            assert array.shape == (3, *leaf.row_shape)
            assert array.dtype == np.dtype(leaf.dtype)
    assert num_final > 0
    env.close()


@pytest.mark.parametrize("env_id", ["CartPole-v1", CATCH, "Mock"])
def test_episodes_add_up_their_rewards_and_decisions(env_id: str) -> None:
    env = make_vector_env(env_id, 2, seed=1, env_kwargs={"episode_length": 20} if env_id == "Mock" else None)
    returns, lengths, num_episodes = np.zeros(2), np.zeros(2, np.int64), 0
    for t, rows in enumerate(play(env, 200)):
        returns += rows.rewards
        lengths += ~rows.is_first if t else 0
        assert [env for env, _, _ in rows.episodes] == list(np.flatnonzero(rows.terminated | rows.truncated))
        for i, episode_return, length in rows.episodes:
            assert (episode_return, length) == (returns[i], lengths[i])
            returns[i] = lengths[i] = 0
            num_episodes += 1
    assert num_episodes > 4


def test_a_time_limit_truncates() -> None:
    ends = [rows for rows in play(make_vector_env("Pendulum-v1", 1, seed=0), 201) if rows.truncated.any()]
    assert len(ends) == 1
    assert not ends[0].terminated.any()
    assert ends[0].episodes[0][2] == 200


def test_catch_rewards_the_last_decision() -> None:
    rows = play(make_vector_env(CATCH, 1, seed=3), 99)
    assert {episode[2] for row in rows for episode in row.episodes} == {9}
    assert {episode[1] for row in rows for episode in row.episodes} == {1.0, -1.0}


def test_a_seed_repeats_the_environments_but_a_reset_does_not() -> None:
    first, second = (make_vector_env("CartPole-v1", 2, seed=5) for _ in range(2))
    start = first.reset().observation[0]
    np.testing.assert_array_equal(start, second.reset().observation[0])
    assert not np.array_equal(start[0], start[1])
    assert not np.array_equal(start, first.reset().observation[0])


@pytest.mark.parametrize("env_id", ["Mock", "BreakoutNoFrameskip-v4"])
def test_stacks_start_with_the_first_frame_and_shift(env_id: str) -> None:
    kwargs = {"episode_length": 10} if env_id == "Mock" else None
    stacked = make_vector_env(env_id, 2, env_kwargs=kwargs, seed=2)
    newest = make_vector_env(env_id, 2, env_kwargs=kwargs, seed=2, full_stacks=False)
    history: list[list[object]] = [[], []]
    for full, single in zip(play(stacked, 60), play(newest, 60), strict=True):
        for env in range(2):
            frame = single.observation[0][env]
            history[env] = [frame] * 4 if full.is_first[env] else [*history[env][1:], frame]
            np.testing.assert_array_equal(full.observation[0][env], np.stack(history[env]))  # type: ignore[arg-type]


def test_rows_are_not_overwritten_by_later_steps() -> None:
    env = make_vector_env("CartPole-v1", 2, seed=0)
    first = env.reset()
    kept = first.observation[0].copy()
    env.step([np.zeros(2, np.int64)])
    np.testing.assert_array_equal(first.observation[0], kept)


def test_an_environment_that_cannot_be_made_is_reported_with_the_line_that_raised() -> None:
    reason = r"could not be made: OSError: no licence file \(envserver_faults\.py, line \d+\)"
    with pytest.raises(EnvironmentFailure, match=reason):
        make_vector_env(f"{FAULTS}:CannotBeMade-v0", 2)


def test_a_constructor_that_fails_now_and_then_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "moody.py").write_text(SECOND_CONSTRUCTOR_WORKS)
    assert make_vector_env("moody:Moody-v0", 1).num_envs == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_package", "importing broken failed: ModuleNotFoundError: No module named 'no_such_package'"),
        ("x = 1\n1 / 0", r"importing broken failed: ZeroDivisionError: division by zero \(broken\.py, line 2\)"),
        ("raise SystemExit(2)", r"importing broken failed: SystemExit: 2 \(broken\.py, line 1\)"),
        ("def step(:", r"importing broken failed: SyntaxError: .*broken\.py, line 1"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_the_reason(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "broken.py").write_text(code)
    with pytest.raises(ValueError, match=f"env = 'broken:Id-v0': {reason}"):
        make_vector_env("broken:Id-v0", 1)


def test_a_module_of_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    for module in ("beside_me", "beside_me_too"):
        (tmp_path / f"{module}.py").write_text(NAMES_ITS_ACTIONS)
    assert make_vector_env("beside_me:Named-v0", 1).num_envs == 1
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(tmp_path)])
    assert find_action_meanings("beside_me_too:Named-v0") == ["LEFT", "STAY", "RIGHT"]


def test_a_module_that_is_not_there_is_named_with_the_folder_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(ValueError, match=f"there is no module nowhere, neither in {tmp_path} nor installed"):
        make_vector_env("nowhere.envs:Id-v0", 1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("RaisesInStep", "step raised RuntimeError.*on fire"),
        ("RewardIsNotFinite", "the reward nan: it must be a finite float32"),
    ],
)
def test_a_failing_environment_is_reported_as_such(name: str, reason: str) -> None:
    env = make_vector_env(f"{FAULTS}:{name}-v0", 2)
    first, second = play(env, 1)
    assert first.interrupted.size == 0
    assert second.interrupted.all() and second.truncated.all()
    assert not (second.terminated | second.is_first).any() and not second.rewards.any()
    assert [i for i, _ in second.failures] == [0, 1]
    assert all(re.search(reason, text) for _, text in second.failures)
    with pytest.raises(EnvironmentFailure, match=f"environment 0 failed: .*{reason}"):
        second.require_whole()


@pytest.fixture
def panics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yields the id of an environment that raises unusual errors, in a process that handles SIGINT."""
    (tmp_path / "panics.py").write_text(PANICS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "panics", raising=False)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield "panics:Panics-v0"
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", UNUSUAL)
@pytest.mark.parametrize("where", ["reset", "step", "close"])
def test_whatever_an_environment_raises_it_fails_alone(panics: str, where: str, error: str) -> None:
    env = make_vector_env(panics, 2, env_kwargs={"where": where, "error": error})
    rows = play(env, 1)[1]
    env.close()
    assert [i for i, _ in rows.failures] == [0, 1]
    assert all(reason.isprintable() and len(reason) < 2000 for _, reason in rows.failures)


def test_the_text_of_an_error_is_printable() -> None:
    assert message(ValueError("\x1b[2J \udcff \0")).isprintable()


@pytest.mark.parametrize("error", UNUSUAL)
def test_whatever_a_constructor_raises_is_reported(panics: str, error: str) -> None:
    with pytest.raises(EnvironmentFailure, match="could not be made"):
        make_vector_env(panics, 1, env_kwargs={"where": "constructor", "error": error})


def test_ctrl_c_is_no_failure_of_an_environment(panics: str) -> None:
    env = make_vector_env(panics, 1, env_kwargs={"where": "step", "error": "interrupt"})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        play(env, 1)


def test_failures_of_one_kind_are_one_line_of_the_log_whatever_they_say(
    panics: str, caplog: pytest.LogCaptureFixture
) -> None:
    env = make_vector_env(panics, 1, env_kwargs={"where": "step", "error": "counted"})
    reasons = {rows.failures[0][1] for rows in [*play(env, 1), *play(env, 1), *play(env, 1)] if rows.failures}
    assert len(reasons) == 3
    assert caplog.text.count("is created again") == 1


def test_a_reset_makes_a_broken_environment_anew() -> None:
    env = make_vector_env(f"{FAULTS}:RaisesInStep-v0", 1)
    assert [rows.interrupted.any() for rows in [*play(env, 1), *play(env, 1)]] == [False, True, False, True]


def test_environments_that_keep_failing_are_given_up_together() -> None:
    env = make_vector_env(f"{FAULTS}:RaisesInStep-v0", 2, policy=FaultPolicy(max_failures=2))
    play(env, 1)
    with pytest.raises(EnvironmentFailure, match=r"every environment failed too often, .*on fire"):
        play(env, 1)
    with pytest.raises(EnvironmentFailure, match="every environment failed too often"):
        env.reset()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"env": "CartPool-v1", "num_envs": 1}, "env = 'CartPool-v1'.*"),
        ({"env": "no_such_module:Id-v0", "num_envs": 1}, "no_such_module"),
        ({"env": "CartPole-v1", "num_envs": 0}, "num_envs = 0"),
        ({"env": "CartPole-v1", "num_envs": 1, "preset": "atari"}, "preset = 'atari'"),
        ({"env": "CartPole-v1", "num_envs": 1, "preset": "atari-v4"}, "no Atari game"),
        ({"env": "PnogNoFrameskip-v4", "num_envs": 1}, "no Atari game 'Pnog'; similar: .*Pong"),
        ({"env": "PongNoFrameskip-v4", "num_envs": 1, "env_kwargs": {"stick": 1}}, "env_kwargs = 'stick'.*noop_max"),
        ({"env": "Mock", "num_envs": 1, "env_kwargs": {"episode_length": 0}}, "episode_length = 0"),
        ({"env": "Mock", "num_envs": 1, "env_kwargs": {"x": 0}}, "env_kwargs = .*x"),
    ],
)
def test_what_cannot_be_made_is_named(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make_vector_env(**arguments)  # type: ignore[arg-type]


def test_an_atari_id_without_preset_is_the_plain_environment() -> None:
    env = make_vector_env("ALE/Pong-v5", 1, preset="none")
    assert env.spec_observation == [Leaf("", "uint8", (210, 160, 3))]
