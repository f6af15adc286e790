"""Services that track the runs of a sweep show them together."""

from typing import Any

import pytest

from kubebeast_sweep.grouping import grouped


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"tracker": ["wandb"]}, {"wandb": {"group": "pong"}}),
        (
            {"tracker": ["wandb", "mlflow", "trackio"], "tracker_options": {"wandb": {"mode": "offline"}}},
            {
                "wandb": {"group": "pong", "mode": "offline"},
                "mlflow": {"experiment": "pong"},
                "trackio": {"project": "pong"},
            },
        ),
        ({"tracker": ["wandb"], "tracker_options": '{"wandb": {"group": "mine"}}'}, {"wandb": {"group": "mine"}}),
        ({"tracker": ["my:Tracker"], "tracker_options": {"my:Tracker": {"a": 1}}}, {"my:Tracker": {"a": 1}}),
    ],
)
def test_the_name_of_the_sweep_is_the_group_unless_there_is_one(settings: dict[str, Any], options: Any) -> None:
    assert grouped(settings, "pong") == {**settings, "tracker_options": options}


@pytest.mark.parametrize("options", ["{", [1], {"wandb": 3}])
def test_options_that_a_run_refuses_are_left_to_it(options: Any) -> None:
    settings = {"tracker": ["wandb"], "tracker_options": options}

    assert grouped(settings, "pong") == settings


def test_runs_without_a_tracker_stay_as_they_are() -> None:
    assert grouped({"env": "X"}, "pong") == {"env": "X"}
