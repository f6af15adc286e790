"""Trainers that are not KubeBeast's learn on a fleet whose env-servers are killed and replaced."""

import contextlib
import importlib.util

import pytest

from harness.ports import free_address
from harness.processes.fleet_trainers import EnvServers, lines_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NUM_ENVS = 4
BOUND = 100.0
"""Mean return of CartPole's newest 100 episodes; about 20 without learning."""


@pytest.mark.parametrize("script", ["fleet_ppo.py", "fleet_sb3.py"])
def test_a_trainer_learns_while_env_servers_are_killed_and_replaced(script: str) -> None:
    if script == "fleet_sb3.py" and importlib.util.find_spec("stable_baselines3") is None:
        pytest.skip("stable-baselines3 is no requirement of KubeBeast's: pip install it beside")
    address = free_address()
    servers = EnvServers(address)
    returns = []
    try:
        for _ in range(NUM_ENVS + 1):
            servers.start()
        with contextlib.closing(lines_of(script, address, total_steps=40_000, num_envs=NUM_ENVS)) as lines:
            for number, (_, mean, lost) in enumerate(lines):
                returns.append(mean)
                if number in (10, 20):
                    servers.kill_oldest()
                    servers.start()
                if mean >= BOUND and lost > 0:
                    break
    finally:
        servers.kill_all()
    assert min(returns[:10]) < BOUND / 2
    assert returns[-1] >= BOUND
    assert lost > 0
