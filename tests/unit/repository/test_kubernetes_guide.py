"""The guide to Kubernetes is correct: its values, settings, metrics and recipes exist."""

import re

from kubebeast_common.cli.settings import setting_types
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_learner.config import LearnerConfig
from kubebeast_learner.config.recipes import RECIPES
from kubebeast_learner.run.snapshot import Snapshot
from tests.unit.repository import shell
from tests.unit.repository.chart_values import CHART, complaints, has_path, schema
from tests.unit.repository.documents import ROOT, blocks, prose

GUIDE = ROOT / "docs" / "kubernetes.md"


def shell_text() -> str:
    return "\n".join(block.text for block in blocks(GUIDE) if block.language == "sh")


def settings() -> set[str]:
    return set(setting_types(LearnerConfig)) | set(setting_types(EnvServerConfig))


def test_every_value_that_is_named_exists() -> None:
    sections = "|".join(schema()["properties"])
    paths = set(re.findall(rf"`((?:{sections})(?:\.\w+)+)`", prose(GUIDE)))
    paths |= set(re.findall(r"--set(?:-json)? ([\w.]+)=", shell_text()))

    assert len(paths) > 15
    assert [path for path in sorted(paths) if not has_path(path)] == []


def test_a_value_that_does_not_exist_would_be_found() -> None:
    assert has_path("learner.config.total_steps")
    assert not has_path("learner.config.total_step")
    assert complaints({"learner": {"config": {"total_steps": 10}}}) == []
    (complaint,) = complaints({"envservers": {"envserver": {"replica": 1}}})
    assert complaint.startswith("$.envservers.envserver: ") and "replica" in complaint


def test_every_setting_and_metric_that_is_named_exists() -> None:
    sources = [*(ROOT / "services").rglob("metrics/*.py"), *(ROOT / "services").rglob("metrics.py")]
    sources.append(CHART / "rules" / "kubebeast.yaml")
    exported = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    names = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", prose(GUIDE)))
    metrics = {name for name in names if name.startswith("kubebeast_")}

    assert metrics
    assert [name for name in sorted(metrics) if not re.search(rf"\b{name}\b", exported)] == []
    assert names - metrics
    assert names - metrics <= settings() | set(setting_types(Snapshot))


def test_every_command_within_a_sentence_is_accepted() -> None:
    lines = re.findall(r"`((?:helm|kubectl|kubebeast) [^`]+)`", prose(GUIDE))
    found = [(line, shell.complaint(words)) for line in lines for words in shell.commands(line)]

    assert len(found) > 4
    assert [(line, complaint) for line, complaint in found if complaint] == []


def test_every_recipe_is_named() -> None:
    assert [recipe.name for recipe in RECIPES if f"`{recipe.name}`" not in prose(GUIDE)] == []


def test_every_file_of_a_command_exists() -> None:
    paths = set(re.findall(r"(?<![\w/.])((?:deploy|docker|services|protos)/[\w./-]+)", shell_text()))

    assert paths
    assert [path for path in sorted(paths) if not (ROOT / path.rstrip(".")).exists()] == []
