"""Trainers other than KubeBeast's learn on a fleet with env-servers that are killed and replaced."""

import contextlib
import importlib.util

import pytest

from harness.ports import free_address
from harness.processes.fleet_trainers import EnvServers, lines_of

pytestmark = pytest.mark.slow

NUM_ENVS = 4
BOUND = 60.0
"""Mean return of CartPole's newest 100 episodes; about 22 without learning."""
MOST_STEPS = 40_000
"""Seven times the need of fleet_ppo.py on environments that are never killed."""
KILL_EVERY = 10
"""Number of rollouts between kills."""


@pytest.mark.parametrize("script", ["fleet_ppo.py", "fleet_sb3.py"])
def test_a_trainer_learns_while_env_servers_are_killed_and_replaced(script: str) -> None:
    if script == "fleet_sb3.py" and importlib.util.find_spec("stable_baselines3") is None:
        pytest.skip("stable-baselines3 is no requirement of KubeBeast's: pip install it beside")
    address = free_address()
    servers = EnvServers(address)
    mean, lost = 0.0, 0
    try:
        for _ in range(NUM_ENVS + 1):
            servers.start()
        with contextlib.closing(lines_of(script, address, total_steps=MOST_STEPS, num_envs=NUM_ENVS)) as lines:
            for number, (_, mean, lost) in enumerate(lines, start=1):
                # An env-server that leaves in reserve, or between two episodes, loses no episode.
                if lost < 2 and number % KILL_EVERY == 0:
                    servers.kill_oldest()
                    servers.start()
                if lost >= 2 and mean >= BOUND:
                    break
    finally:
        servers.kill_all()
    assert lost >= 2
    assert mean >= BOUND
