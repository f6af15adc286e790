"""Levels are read in each of their forms, and settings that do not fit each other are refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubebeast_learner.config import ConfigError, CurriculumConfig, LearnerConfig, MonoConfig, TrainConfig
from kubebeast_learner.config.episodes.curriculum import MAX_LEVELS, read_levels
from kubebeast_learner.config.episodes.tasks import TasksConfig
from kubebeast_learner.config.running import ActorProcessesConfig, LocalFleetConfig, RemoteFleetConfig

UNIFORM = CurriculumConfig(curriculum="uniform", levels="[{}]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"n": 1}, {"n": 2}, {"n": 1}]', [{"n": 1}, {"n": 2}]),
        ('{"a": [1, 2], "b": ["x", "y"]}', [{"a": a, "b": b} for a in (1, 2) for b in ("x", "y")]),
        ('{"n": 1}\n\n{"n": 2}\n', [{"n": 1}, {"n": 2}]),
        ('{"n": [1, 2]}\n', [{"n": 1}, {"n": 2}]),
        ('{"n": 1}\n', [{"n": 1}]),
        ('{"n": 1, "walls": [2, 3]}', [{"n": 1, "walls": [2, 3]}]),
        ("{}", [{}]),
    ],
)
def test_levels_of_a_file(text: str, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    path.write_text(text)

    assert read_levels(str(path)) == expected


@pytest.mark.parametrize("text", ['{"walls": [1, 2]}\n', '{"walls": [1, 2]}\n\n{"walls": []}\n', '{"n": 1}'])
def test_each_line_of_a_file_of_lines_is_a_level(text: str, tmp_path: Path) -> None:
    path = tmp_path / "levels.jsonl"
    path.write_text(text)

    assert read_levels(str(path)) == [json.loads(line) for line in text.splitlines() if line]


def test_levels_of_the_setting_itself() -> None:
    assert read_levels('{"n": [1, 2]}') == [{"n": 1}, {"n": 2}]
    assert read_levels('{"n": 1}') == [{"n": 1}]
    assert read_levels("") == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"curriculum": "random"}, "curriculum = 'random': must be uniform, success, progress or module:Class"),
        ({"curriculum": "uniform"}, "curriculum = 'uniform': needs levels"),
        ({"levels": "[{}]"}, r"levels = '\[\{\}\]': needs curriculum"),
        ({"curriculum_options": '{"a": 1}'}, "curriculum_options = .*: needs curriculum"),
        ({"curriculum": "uniform", "levels": "[]"}, r"levels = '\[\]': has no level"),
        ({"curriculum": "uniform", "levels": "[3]"}, r"levels = '\[3\]': level 1: 3 is no mapping"),
        ({"curriculum": "uniform", "levels": '[{"a": NaN}]'}, "is no JSON: NaN is no JSON"),
        ({"curriculum": "uniform", "levels": '{"a": []}'}, r"has no combination, as a list .* level of lists is \[\{"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_name(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        CurriculumConfig(**settings)


def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"levels = '.*none.json': .*No such file"):
        read_levels(str(tmp_path / "none.json"))
    path = tmp_path / "levels.json"
    path.write_text('{"n": 1}\n{"n": }\n')
    with pytest.raises(ConfigError, match=r"levels = '.*levels.json': Expecting value"):
        read_levels(str(path))
    path.write_text("3")
    with pytest.raises(ConfigError, match=r"levels = '.*levels.json': must be a list of objects, an object of lists"):
        read_levels(str(path))
    lines = tmp_path / "levels.jsonl"
    lines.write_text('{"n": 1}\n[{"n": 2}]\n')
    with pytest.raises(ConfigError, match=r"levels = '.*levels.jsonl': level 2: \[\{'n': 2\}\] is no mapping"):
        read_levels(str(lines))


def test_the_number_of_levels_is_bounded() -> None:
    numbers = list(range(300))
    with pytest.raises(ConfigError, match=f"must be at most {MAX_LEVELS}"):
        CurriculumConfig(curriculum="uniform", levels=f'{{"a": {numbers}, "b": {numbers}}}')


def test_a_training_without_one_order_of_episodes_of_one_task_has_no_curriculum() -> None:
    tasks = TasksConfig(task_shares="Pong-v5=1,Breakout-v5=1")
    for make, reason in (
        (lambda: MonoConfig(curriculum=UNIFORM, actors=ActorProcessesConfig(lag=0)), "not repeatable"),
        (lambda: TrainConfig(curriculum=UNIFORM, fleet=LocalFleetConfig(lag=0)), "not repeatable"),
        (lambda: LearnerConfig(curriculum=UNIFORM, tasks=tasks), "task_shares has several"),
        (
            lambda: LearnerConfig(curriculum=UNIFORM, fleet=RemoteFleetConfig(from_recording=Path("old"))),
            "from_recording plays no environments",
        ),
    ):
        with pytest.raises(ConfigError, match=f"^curriculum = 'uniform': .*{reason}"):
            make()
