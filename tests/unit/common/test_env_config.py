"""How an environment is made, told from process to process."""

from typing import Any

import pytest

from kubebeast_common.env_config import EnvConfig
from kubebeast_envserver.envs.factory import Preset, resolve_config


def test_equal_configurations_are_equal_text() -> None:
    one = EnvConfig(preset="none", kwargs={"size": 5, "name": "ä", "walls": [1.5, None, {"b": True, "a": 0}]})
    other = EnvConfig(preset="none", kwargs={"walls": [1.5, None, {"a": 0, "b": True}], "name": "ä", "size": 5})
    text = '{"kwargs":{"name":"\\u00e4","size":5,"walls":[1.5,null,{"a":0,"b":true}]},"preset":"none"}'
    assert one.to_json() == other.to_json() == text
    assert text.isascii()
    assert EnvConfig.from_json(text) == one


def test_keys_of_newer_versions_are_passed_over() -> None:
    assert EnvConfig.from_json('{"preset":"atari-v4","wrappers":["mine"]}') == EnvConfig(preset="atari-v4")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("size=5", "Expecting value"),
        ("[1]", "not a JSON object"),
        ("{}", "preset is None"),
        ('{"preset":4}', "preset is 4"),
        ('{"preset":"a\\nb"}', "not a printable text"),
        ('{"preset":"none","kwargs":[]}', r"kwargs are \[\]"),
        ('{"preset":"none","kwargs":{"x":NaN}}', "NaN is no JSON"),
        ("[" * 8192, "nested too deeply"),
        (f'{{"preset":"none","kwargs":{{"a":{"[" * 40}{"]" * 40}}}}}', "nested too deeply"),
        ('{"preset":"none","kwargs":{"a":-1e999}}', "-1e999 is no finite number"),
        ("9" * 8192, "digits"),
    ],
)
def test_what_a_peer_sends_is_checked(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        EnvConfig.from_json(text)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes"])
def test_arguments_that_json_has_not_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        EnvConfig(preset="none", kwargs={"x": value}).to_json()


@pytest.mark.parametrize(
    ("env", "preset", "resolved"),
    [
        ("PongNoFrameskip-v4", "auto", "atari-v4"),
        ("ALE/Pong-v5", "auto", "atari-v5"),
        ("PongNoFrameskip-v4", "atari-v5", "atari-v5"),
        ("PongNoFrameskip-v4", "none", "none"),
        ("CartPole-v1", "auto", "none"),
        ("Mock", "auto", "none"),
    ],
)
def test_a_resolved_preset_is_the_one_that_is_applied(env: str, preset: Preset, resolved: str) -> None:
    assert resolve_config(env, preset, {}) == EnvConfig(preset=resolved)


def test_overrides_that_the_preset_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="env_kwargs = 'size': unknown to the preset atari-v4"):
        resolve_config("PongNoFrameskip-v4", "auto", {"size": 5})
