"""A run records the origin of its settings beside them, for readers that do not know this package."""

import json

from kubebeast_common.cli.settings import as_settings
from kubebeast_learner.config import LearnerConfig, MonoConfig
from kubebeast_learner.config.recipes import RecipeChoice
from kubebeast_learner.run.facts import describe_run


def test_a_run_records_the_defaults_of_its_command_and_its_recipe() -> None:
    facts = json.loads(json.dumps(describe_run(MonoConfig(recipe=RecipeChoice("atari")))))

    assert facts["defaults"] == json.loads(json.dumps(as_settings(MonoConfig())))
    assert facts["recipe"]["name"] == "atari" and facts["recipe"]["settings"]
    assert facts["versions"]["kubebeast"] and facts["hardware"]["cores"] >= 1


def test_a_run_without_a_recipe_records_none() -> None:
    assert describe_run(LearnerConfig())["recipe"] is None
