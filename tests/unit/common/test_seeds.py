"""Every environment accepts the seeds, derived or given."""

import re

import pytest

from kubebeast_common.seeds import derived_seed
from kubebeast_common.settings import ConfigError
from kubebeast_envserver.config import MAX_SEED, EnvServerConfig
from kubebeast_envserver.envs.factory import make_vector_env


def test_derived_seeds_differ_and_leave_room_to_count_up() -> None:
    seeds = {derived_seed(1, index, start) for index in range(50) for start in range(50)}
    assert len(seeds) == 2500
    assert 0 <= min(seeds) <= max(seeds) < 2**30


def test_an_emulator_takes_the_largest_seed() -> None:
    env = make_vector_env("PongNoFrameskip-v4", 2, seed=MAX_SEED - 1)
    assert env.reset().is_first.all()
    env.close()


@pytest.mark.parametrize("seed", [-1, MAX_SEED - 6, 2**32])
def test_a_seed_that_not_every_environment_could_take_is_named(seed: int) -> None:
    with pytest.raises(
        ConfigError, match=f"^seed = {seed}: must be 0 to 2147483647, as .* last environment, {seed + 7}"
    ):
        EnvServerConfig(env="Mock", seed=seed, num_streams=2, envs_per_stream=4)
    with pytest.raises(ValueError, match=re.escape(f"seed = {seed}: must be 0 to 2147483647 for each of 8")):
        make_vector_env("Mock", 8, seed=seed)
