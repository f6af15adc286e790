"""A curriculum of the user's own chooses texts for environments, and its errors end the run in words."""

import io
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_common.spec.episode_options import to_text
from kubebeast_learner.config import ConfigError, CurriculumConfig
from kubebeast_learner.curriculum.base import CurriculumError, Level
from kubebeast_learner.curriculum.choice import CURRICULA, load_levels
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.curriculum.listed import LEVELS_PER_RESULT
from kubebeast_learner.curriculum.progress import Progress
from kubebeast_learner.curriculum.uniform import Uniform

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
    levels = Levels(f"{MODULE}:{name}", globals()[name]([], 0), ())

    with pytest.raises(CurriculumError, match=f"^curriculum = '{MODULE}:{name}': {reason}"):
        getattr(levels, method)(*arguments)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("Missing", {}, "curriculum = .*has no Missing|curriculum = "),
        ("Unusable", {}, "cannot be made: PermissionError: no file"),
        ("Lacking", {}, "it lacks on_episode"),
        ("Broken", {}, "state_dict: returned a value without JSON"),
        ("MODULE", {}, "must be a class"),
        ("Stairs", {"curriculum_options": '{"last":5}'}, "unexpected keyword argument 'last'"),
    ],
)
def test_a_curriculum_that_cannot_be_made_is_a_wrong_setting(name: str, settings: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        make(name, **settings)


class Numbers(Stairs):
    """A state of numbers of many types."""

    def __init__(self, levels: Sequence[Mapping[str, Any]], seed: int) -> None:
        self.state: Any = {"mean": np.float64(0.5), "by_size": {7: (Kind.EASY, True, None, [2])}}

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.state = state


class Kind(StrEnum):
    EASY = "easy"


def test_a_state_is_read_from_a_checkpoint_although_its_numbers_are_those_of_numpy() -> None:
    file = io.BytesIO()
    torch.save(make("Numbers").state_dict(), file)
    file.seek(0)

    state = torch.load(file, weights_only=True)["state"]
    assert state == {"mean": 0.5, "by_size": {7: ("easy", True, None, [2])}}


def test_a_state_after_an_error_is_the_newest_one_that_a_checkpoint_holds() -> None:
    curriculum: Any = Numbers([], 0)
    levels = Levels("numbers", curriculum, ())
    curriculum.state = {"mean": 1.0}
    before = levels.state_dict()
    curriculum.state["mean"] = math.nan

    with pytest.raises(CurriculumError, match="state_dict"):
        levels.state_dict()
    assert levels.rescued_state() == before == {"curriculum": "numbers", "state": {"mean": 1.0}}
    curriculum.state["mean"] = 2.0
    assert levels.rescued_state()["state"] == {"mean": 2.0}


class Counting(Uniform):
    """A built-in curriculum with a method of the user."""

    num_draws = 0

    def next_level(self) -> Level:
        self.num_draws += 1
        return super().next_level()


def test_a_method_that_replaces_a_built_in_one_is_called() -> None:
    curriculum = Counting([{"height": 1}], 0)
    levels = Levels("counting", curriculum, ())

    assert levels.draw(3) == ['{"height":1}'] * 3
    assert curriculum.num_draws == 3


@pytest.mark.parametrize("name", ["uniform", "progress", "success"])
def test_texts_and_levels_of_a_built_in_curriculum_are_the_same(name: str) -> None:
    listed = [{"b": [2, 1], "a": index} for index in range(50)]
    fast, slow = (CURRICULA[name](listed, 3) for _ in range(2))
    levels = Levels(name, fast, ())
    for episode in range(400):
        (text,) = levels.draw(1)
        level = slow.next_level()
        assert text == to_text(level)
        levels.add(text, float(episode % 7), 5, ())
        slow.on_episode(level, float(episode % 7), 5, {})
    assert fast.state_dict() == slow.state_dict()


def test_many_levels_are_drawn_by_results_that_are_nearly_new() -> None:
    listed = [{"seed": index} for index in range(10 * LEVELS_PER_RESULT)]
    curriculum = Progress(listed, 1)
    levels = Levels("progress", curriculum, ())
    for _ in listed:  # each of them once
        (text,) = levels.draw(1)
        levels.add(text, 0.0, 5, ())
    changing = to_text(listed[3])
    for episode in range(20):
        levels.add(changing, 5.0 * (episode % 2), 5, ())
    drawn = levels.draw(200)
    assert drawn.count(changing) > 100
