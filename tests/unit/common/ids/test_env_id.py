"""All spellings of an environment's id refer to the same environment."""

import gymnasium
import pytest
from ale_py import registration, roms

from kubebeast_common.ids.atari_games import GAMES, WITH_VERSION_4
from kubebeast_common.ids.env_id import EnvId, parse_env_id


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("CartPole-v1", EnvId("", "", "", "CartPole", 1)),
        ("CartPole", EnvId("", "", "", "CartPole", None)),
        ("my.envs:vector/Mine/Maze-v0", EnvId("my.envs", "vector/", "Mine", "Maze", 0)),
        ("ale_py:ALE/Pong-v5", EnvId("ale_py", "", "ALE", "Pong", 5)),
        ("shimmy:dm_control/cartpole-swingup-v0", EnvId("shimmy", "", "dm_control", "cartpole-swingup", 0)),
        ("pettingzoo/mpe2.simple_spread_v3", EnvId("", "pettingzoo/", "", "mpe2.simple_spread_v3", None)),
        ("MiniGrid-DoorKey-5x5-v0", EnvId("", "", "", "MiniGrid-DoorKey-5x5", 0)),
        ("", EnvId("", "", "", "", None)),
        ("a/b/c", EnvId("", "", "a", "b/c", None)),
    ],
)
def test_an_id_has_parts(text: str, parts: EnvId) -> None:
    assert parse_env_id(text) == parts
    assert parts.plain in text


@pytest.mark.parametrize(
    ("env_id", "preset"),
    [
        *(
            (f"{module}PongNoFrameskip{version}", "atari-v4")
            for module in ("", "ale_py:")
            for version in ("-v4", "", "-v0")
        ),
        *(
            (env_id, "atari-v5")
            for env_id in ("ALE/Pong-v5", "ALE/Pong", "ale_py:ALE/Pong-v5", "gymnasium:ALE/Pong", "Pong-v5")
        ),
        *((env_id, "atari-v4") for env_id in ("Pong", "Pong-v0", "SpaceInvadersDeterministic", "Seaquest-v4")),
        ("PnogNoFrameskip-v4", "atari-v4"),
        *(
            (env_id, None)
            for env_id in ("CartPole-v1", "Ant-v5", "Hopper-v4", "Pong-ram-v4", "Blackjack-v1", "Blackjack", "Pong-v1")
        ),
        *(
            (env_id, None)
            for env_id in ("vector/ALE/Pong-v5", "envpool/Pong-v5", "MinAtar/Breakout-v1", "MinAtar/Breakout")
        ),
    ],
)
def test_the_preset_goes_by_the_id(env_id: str, preset: str | None) -> None:
    assert parse_env_id(env_id).atari_preset == preset


def test_the_games_are_those_that_ale_py_registers() -> None:
    assert {registration.rom_id_to_name(rom) for rom in roms.get_all_rom_ids()} == GAMES
    registered = {spec.name for spec in gymnasium.registry.values() if spec.namespace is None and spec.version == 4}
    assert {name for name in registered & GAMES if "NoFrameskip" not in name} == WITH_VERSION_4
