"""A run in a bucket needs no claim: the learner and the evaluator reach it from any node."""

import re
from pathlib import Path
from typing import Any

import pytest

from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.parsing import StartLog, parse
from kubebeast_learner.config.sources import layer_flags
from tests.chart.chart import CHART, Manifests, Object, container, notes, render, render_error

URL = "s3://bucket/runs"
DOCKERFILE = CHART.parents[2] / "docker" / "learner.Dockerfile"
SECRET = {"secretRef": {"name": "bucket-key"}}
MORE = {"configMapRef": {"name": "more"}}


def rendered(**values: Any) -> Manifests:
    learner = {"storage": {"url": URL, "existingSecret": "bucket-key"}, **values.pop("learner", {})}
    return render({"learner": learner, **values})


def names(template: Object) -> set[str]:
    """Returns the names of all volumes and mounts."""
    found = [*template["spec"]["volumes"], *container(template)["volumeMounts"]]
    return {each["name"] for each in found}


def test_the_learner_should_have_no_claim_and_no_volume_for_runs() -> None:
    manifests = rendered(learner={"extraEnvFrom": [MORE]})
    spec = manifests.get("StatefulSet")["spec"]

    assert "volumeClaimTemplates" not in spec and "persistentVolumeClaimRetentionPolicy" not in spec
    assert "runs" not in names(spec["template"]) and "tmp" in names(spec["template"])
    assert container(spec["template"])["envFrom"] == [SECRET, MORE]


@pytest.mark.parametrize("url", [URL, ""])
def test_the_learner_should_write_there_whatever_variables_its_image_has(url: str, tmp_path: Path) -> None:
    manifests = render({"learner": {"storage": {"url": url}}})
    file = tmp_path / "learner.yaml"
    file.write_text(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    name, *flags = container(manifests.get("StatefulSet")["spec"]["template"])["args"]
    flags = [f"--config={file}" if flag.startswith("--config=") else flag for flag in flags]
    variables = dict(re.findall(r"\b(KUBEBEAST_\w+)=(\S+)", DOCKERFILE.read_text(encoding="utf-8")))
    assert variables

    command = find_commands()[name]
    layered = layer_flags(command.config_type, flags, variables)
    config = parse(StartLog(name, "text"), name, command.config_type, layered, command.has_sources)
    assert config.run.savedir == (url or "/runs")


@pytest.mark.parametrize("persistence", [{}, {"enabled": False}, {"accessModes": ["ReadWriteOncePod"]}])
def test_the_evaluator_should_read_the_bucket_from_any_node(persistence: dict[str, Any]) -> None:
    evaluator = {"enabled": True, "image": {"repository": "kubebeast/evaluator"}}
    manifests = rendered(learner={"persistence": persistence}, evaluator=evaluator)
    template = manifests.get("Deployment", "demo-evaluator")["spec"]["template"]

    assert f"--savedir={URL}" in container(template)["args"]
    assert "affinity" not in template["spec"] and "runs" not in names(template)
    assert container(template)["envFrom"] == [SECRET]


def test_several_learners_should_have_no_claim_either() -> None:
    manifests = rendered(learner={"replicas": 2, "gpu": {"count": 1}})
    for name in ("demo-learner", "demo-peers"):
        spec = manifests.get("StatefulSet", name)["spec"]
        assert "volumeClaimTemplates" not in spec and "runs" not in names(spec["template"])


def test_a_run_without_a_claim_should_not_be_called_lost() -> None:
    persistence = {"enabled": False}
    assert "WARNING: learner.persistence" in notes({"learner": {"persistence": persistence}})
    assert "WARNING: learner.persistence" not in notes(
        {"learner": {"persistence": persistence, "storage": {"url": URL}}}
    )


@pytest.mark.parametrize("url", ["/runs", "s3://", "s3:///runs", "ftp://host/runs", "memory://test"])
def test_another_place_than_a_bucket_should_be_refused(url: str) -> None:
    assert "learner.storage.url" in render_error({"learner": {"storage": {"url": url}}}).replace("/", ".")


def test_a_secret_without_a_bucket_should_be_refused() -> None:
    error = render_error({"learner": {"storage": {"existingSecret": "bucket-key"}}})
    assert "learner.storage.existingSecret requires learner.storage.url" in error
