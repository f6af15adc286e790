"""Settings of an environment survive the way from process to process, and malformed ones are refused."""

from typing import Any

import pytest

from kubebeast_common.spec.env_config import EnvConfig, Wrapper, format_wrappers, parse_wrappers
from kubebeast_envserver.envs.factory import Preset, resolve_config


def test_equal_configurations_are_equal_text() -> None:
    one = EnvConfig(preset="none", kwargs={"size": 5, "name": "ä", "walls": [1.5, None, {"b": True, "a": 0}]})
    other = EnvConfig(preset="none", kwargs={"walls": [1.5, None, {"a": 0, "b": True}], "name": "ä", "size": 5})
    text = '{"kwargs":{"name":"\\u00e4","size":5,"walls":[1.5,null,{"a":0,"b":true}]},"preset":"none"}'
    assert one.to_json() == other.to_json() == text
    assert text.isascii()
    assert EnvConfig.from_json(text) == one


def test_keys_of_newer_versions_are_passed_over() -> None:
    assert EnvConfig.from_json('{"preset":"atari-v4","recorder":["mine"]}') == EnvConfig(preset="atari-v4")


def test_wrappers_and_time_limit_are_told_where_there_are_some() -> None:
    wrappers = (Wrapper("a.b:C", {"y": 1, "x": [2]}), Wrapper("d:E"))
    config = EnvConfig(preset="none", wrappers=wrappers, time_limit=100)
    text = '{"kwargs":{},"preset":"none","time_limit":100,"wrappers":[{"a.b:C":{"x":[2],"y":1}},"d:E"]}'
    assert config.to_json() == text
    assert EnvConfig.from_json(text) == EnvConfig.from_plain(config.to_plain()) == config
    assert str(config) == 'preset none, wrappers a.b:C {"x": [2], "y": 1}, d:E, time limit 100'
    assert EnvConfig(preset="none").to_json() == '{"kwargs":{},"preset":"none"}'


@pytest.mark.parametrize(
    ("text", "wrappers"),
    [
        ("", ()),
        ("[]", ()),
        ("a.b:C", (Wrapper("a.b:C"),)),
        ("a.b:C, d:E,a.b:C", (Wrapper("a.b:C"), Wrapper("d:E"), Wrapper("a.b:C"))),
        ('["a.b:C", {"d:E": {"x": 1}}]', (Wrapper("a.b:C"), Wrapper("d:E", {"x": 1}))),
        ('[{"a.b:C": {}}]', (Wrapper("a.b:C"),)),
    ],
)
def test_wrappers_are_a_list_of_names_or_json(text: str, wrappers: tuple[Wrapper, ...]) -> None:
    assert parse_wrappers(text) == wrappers
    assert parse_wrappers(format_wrappers(wrappers)) == wrappers


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mine", "'mine' is not of the form module:Name"),
        ("a:B,", "'' is not of the form module:Name"),
        ("a:B c:D", "'a:B c:D' is not of the form module:Name"),
        ("os;evil:B", "is not of the form module:Name"),
        ("[", "Expecting value"),
        ("[4]", '4 is neither "module:Name" nor'),
        ('[{"a:B": {}, "c:D": {}}]', "is neither"),
        ('[{"a:B": 5}]', "the arguments of a:B are 5, not an object"),
        ('[{"a:B": {"x": NaN}}]', "NaN is no JSON"),
    ],
)
def test_what_is_no_list_of_wrappers_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_wrappers(text)


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
        ('{"preset":"none","wrappers":"a:B"}', "wrappers are 'a:B', not a list"),
        ('{"preset":"none","wrappers":["mine"]}', "'mine' is not of the form module:Name"),
        ('{"preset":"none","time_limit":-1}', "time_limit is -1, not a number of steps"),
        ('{"preset":"none","time_limit":true}', "time_limit is True"),
        ('{"preset":"none","time_limit":1.5}', "time_limit is 1.5"),
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
