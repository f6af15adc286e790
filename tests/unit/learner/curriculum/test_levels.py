"""A curriculum of the user's own chooses texts for environments, and its errors end the run in words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kubebeast_learner.config import ConfigError, CurriculumConfig
from kubebeast_learner.curriculum.base import CurriculumError
from kubebeast_learner.curriculum.choice import load_levels
from kubebeast_learner.curriculum.levels import Levels

MODULE = __name__


class Stairs:
    """One level higher after each episode."""

    def __init__(self, levels: Sequence[Mapping[str, Any]], seed: int, first: int = 0) -> None:
        self.levels, self.seed = levels, seed
        self.height = first
        self.episodes: list[Any] = []

    def next_level(self) -> dict[str, Any]:
        return {"height": self.height}

    def on_episode(self, *episode: Any) -> None:
        self.episodes.append(episode)
        self.height += 1


class Full(Stairs):
    def numbers(self) -> dict[str, float]:
        return {"height": self.height}

    def state_dict(self) -> dict[str, Any]:
        return {"height": self.height}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.height = state["height"]


class Broken(Stairs):
    def next_level(self) -> dict[str, Any]:
        raise KeyError("no level")

    def numbers(self) -> Any:
        return [1]

    def state_dict(self) -> Any:
        return {1j}


class Odd(Stairs):
    def next_level(self) -> Any:
        return {"height": math.inf}


class Unusable:
    def __init__(self, levels: object, seed: int) -> None:
        raise PermissionError("no file")


class Lacking:
    def __init__(self, levels: object, seed: int) -> None: ...

    def next_level(self) -> dict[str, Any]:
        return {}


def make(name: str, log_info: Sequence[str] = (), **settings: Any) -> Levels:
    levels = load_levels(CurriculumConfig(curriculum=f"{MODULE}:{name}", **settings), log_info)(7)
    assert levels is not None
    return levels


def test_without_a_curriculum_there_are_no_levels() -> None:
    assert load_levels(CurriculumConfig(), ())(1) is None


def test_a_curriculum_receives_levels_seed_and_options() -> None:
    curriculum = Stairs([], 0)
    levels = make("Stairs", levels='[{"height":3}]', curriculum_options='{"first":5}')

    assert levels.draw(2) == ['{"height":5}'] * 2
    assert curriculum.levels == []


def test_a_curriculum_receives_its_episodes_with_the_numbers_of_their_info() -> None:
    curriculum: Any = Stairs([], 0)  # it lacks what is optional
    levels = Levels("stairs", curriculum, ["success", "time"])

    levels.add('{"height":0}', 2.5, 10, [1.0, math.nan])
    levels.add("", 9.0, 10, [])

    assert curriculum.episodes == [({"height": 0}, 2.5, 10, {"success": 1.0})]
    assert levels.draw(1) == ['{"height":1}']


def test_a_curriculum_needs_only_two_methods() -> None:
    levels = make("Stairs")

    assert levels.numbers() == {}
    levels.load_state_dict(levels.state_dict())


def test_a_curriculum_continues_unless_it_is_another_one() -> None:
    before = make("Full")
    before.add('{"height":0}', 1.0, 10, [])
    after, other = make("Full"), make("Stairs")

    after.load_state_dict(before.state_dict())
    other.load_state_dict(before.state_dict())
    make("Full").load_state_dict({})

    assert after.numbers() == {"height": 1.0}
    assert other.draw(1) == ['{"height":0}']


@pytest.mark.parametrize(
    ("name", "method", "arguments", "reason"),
    [
        ("Broken", "draw", (1,), "next_level: KeyError: 'no level'"),
        ("Odd", "draw", (1,), "next_level: returned no options of an episode: .*not JSON compliant"),
        ("Broken", "numbers", (), r"numbers: returned \[1\], not names and numbers"),
        ("Broken", "state_dict", (), "state_dict: returned a value without JSON"),
    ],
)
def test_an_error_names_the_curriculum_and_its_method(name: str, method: str, arguments: Any, reason: str) -> None:
    levels = make(name)

    with pytest.raises(CurriculumError, match=f"^curriculum = '{MODULE}:{name}': {reason}"):
        getattr(levels, method)(*arguments)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("Missing", {}, "curriculum = .*has no Missing|curriculum = "),
        ("Unusable", {}, "cannot be made: PermissionError: no file"),
        ("Lacking", {}, "it lacks on_episode"),
        ("MODULE", {}, "must be a class"),
        ("Stairs", {"curriculum_options": '{"last":5}'}, "unexpected keyword argument 'last'"),
    ],
)
def test_a_curriculum_that_cannot_be_made_is_a_wrong_setting(name: str, settings: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        make(name, **settings)
