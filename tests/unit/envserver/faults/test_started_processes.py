"""Processes that an environment has started end when it is created again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.chaos.simulators import ENV_ID, WAYS, alive, started
from kubebeast_common.process.family import Family
from kubebeast_envserver import HostedEnv, make_vector_env
from kubebeast_envserver.faults.made_env import make_with_processes
from kubebeast_envserver.rows.rows import StepRows

FOUND = sorted(set(WAYS) - {"daemon"})
"""Ways whose processes are found; a daemon without a program of its own is missed."""
pytestmark = pytest.mark.filterwarnings("ignore:subprocess [0-9]+ is still running:ResourceWarning")


@pytest.fixture(autouse=True)
def family() -> Iterator[None]:
    """Kills what the test's environments have started."""
    family = Family()
    try:
        with family.adding():
            yield
    finally:
        family.kill()


def play_until_failure(env: HostedEnv, folder: Path) -> StepRows:
    rows = env.reset()
    while not started(folder):  # some write their files themselves
        pass
    while not rows.interrupted.any():
        rows = env.step([np.zeros(env.num_envs, np.int64)])
    return rows


@pytest.mark.parametrize("starts_in_reset", [False, True])
@pytest.mark.parametrize("way", FOUND)
def test_processes_of_an_environment_that_failed_are_gone_and_those_of_its_successor_run(
    tmp_path: Path, way: str, starts_in_reset: bool
) -> None:
    kwargs: dict[str, Any] = {"folder": str(tmp_path), "way": way, "raises_at": 15, "starts_in_reset": starts_in_reset}
    env = make_vector_env(ENV_ID, 1, env_kwargs=kwargs)
    play_until_failure(env, tmp_path)
    assert not alive(tmp_path)
    before = started(tmp_path)
    env.reset().require_whole()
    while not started(tmp_path) - before:
        pass
    assert not before & alive(tmp_path)


def test_processes_of_the_other_environments_live_on(tmp_path: Path) -> None:
    kwargs = {"folder": str(tmp_path), "raises_at": 15}
    env = make_vector_env(ENV_ID, 1, env_kwargs=kwargs)
    other = make_vector_env(ENV_ID, 1, env_kwargs={"folder": str(tmp_path), "starts_in_reset": True})
    of_env = started(tmp_path)
    other.reset()
    play_until_failure(env, tmp_path)
    assert len(of_env) == 1 and alive(tmp_path) == started(tmp_path) - of_env


def test_a_constructor_that_fails_leaves_no_process(tmp_path: Path) -> None:
    def make() -> None:
        WAYS["child"](tmp_path)
        raise RuntimeError("no license")

    with pytest.raises(RuntimeError, match="no license"):
        make_with_processes(make)
    assert started(tmp_path) and not alive(tmp_path)
