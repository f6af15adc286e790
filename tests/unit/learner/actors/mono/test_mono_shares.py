"""Actor processes share the environments in whole environments."""

import pytest

from kubebeast_learner.actors.mono.actors import shares_of
from kubebeast_learner.config import ActorProcessesConfig, ConfigError, MonoConfig


def config(num_actors: int, num_actor_processes: int) -> MonoConfig:
    return MonoConfig(
        actors=ActorProcessesConfig(env="Team", num_actors=num_actors, num_actor_processes=num_actor_processes)
    )


@pytest.mark.parametrize(
    ("num_actors", "num_processes", "num_agents", "expected"),
    [(7, 2, 1, [4, 3]), (12, 2, 3, [6, 6]), (15, 2, 3, [9, 6]), (6, 4, 3, [3, 3]), (3, 2, 3, [3])],
)
def test_agents_of_an_environment_are_in_one_process(
    num_actors: int, num_processes: int, num_agents: int, expected: list[int]
) -> None:
    assert shares_of(config(num_actors, num_processes), num_agents) == expected


@pytest.mark.parametrize("num_actors", [1, 4, 5])
def test_agents_that_are_no_whole_environments_are_refused(num_actors: int) -> None:
    with pytest.raises(ConfigError, match=rf"num_actors = {num_actors}: counts agents, .* multiple of the 3 of Team"):
        shares_of(config(num_actors, 1), 3)
