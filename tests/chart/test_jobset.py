"""Several learners that end: a JobSet, valid for the CustomResourceDefinition and the webhook of JobSet."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from tests.chart.chart import APIS, Manifests, Object, container, notes, render, render_error

SCHEMA = json.loads((Path(__file__).parent / "jobset.schema.json").read_text(encoding="utf-8"))
LONGEST = 63
"""Longest name of a pod, with its random suffix: longestPodName in pkg/webhooks/jobset_webhook.go of JobSet."""


def values(**learner: Any) -> dict[str, Any]:
    return {"learner": {"workload": "job", "replicas": 3, **learner}}


def jobs(manifests: Manifests) -> dict[str, Object]:
    """Returns the specs of the Jobs by name."""
    return {job["name"]: job["template"]["spec"] for job in manifests.get("JobSet")["spec"]["replicatedJobs"]}


@pytest.mark.parametrize("learner", [{}, {"gpu": {"count": 2}, "storage": {"url": "s3://b/runs"}, "queueName": "gpus"}])
@pytest.mark.parametrize("paused", [False, True])
def test_a_jobset_should_be_valid(learner: dict[str, Any], paused: bool) -> None:
    manifests = render(values(**learner) | {"paused": paused and not learner})
    jobset = manifests.get("JobSet")
    jsonschema.validate(jobset, SCHEMA)
    for name, spec in jobs(manifests).items():
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        assert kubernetes_validate.validate(job, "1.37", strict=True)
    assert not manifests.has("StatefulSet")


def test_the_schema_should_find_a_field_that_jobset_does_not_have() -> None:
    jobset = render(values()).get("JobSet")
    with pytest.raises(jsonschema.ValidationError, match="maxRestarts"):
        jsonschema.validate({**jobset, "spec": {**jobset["spec"], "maxRestarts": 1}}, SCHEMA)


def test_the_end_of_the_first_learner_should_end_all() -> None:
    spec = render(values()).get("JobSet")["spec"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["learner"]}
    first, peers = jobs(render(values())).values()
    assert (first["parallelism"], first["completions"], first["backoffLimit"]) == (1, 1, 20)
    assert (peers["parallelism"], peers["completions"]) == (2, 2)
    assert peers["backoffLimit"] == 2**31 - 1, "each failure of the first learner is one of every peer"
    assert first["template"]["spec"]["restartPolicy"] == "Never", "podFailurePolicy requires it"
    assert (peers["template"]["spec"]["restartPolicy"], "podFailurePolicy" in peers) == ("OnFailure", False)


def test_learners_should_meet_in_the_first_pod_under_the_names_of_a_jobset() -> None:
    """<jobset>-<job>-<job index>-<pod index>.<subdomain>, with the existing headless Service as the subdomain."""
    manifests = render(values())
    domain = "demo-learner-headless.training.svc"
    network = manifests.get("JobSet")["spec"]["network"]
    assert network == {"enableDNSHostnames": True, "subdomain": "demo-learner-headless"}
    service = manifests.get("Service", "demo-learner-headless")["spec"]
    assert service["publishNotReadyAddresses"] is True
    for name, spec in jobs(manifests).items():
        args, labels = container(spec["template"])["args"], spec["template"]["metadata"]["labels"]
        assert f"--rdzv-endpoint=$(JOBSET_NAME)-learner-0-0.{domain}:29400" in args
        assert f"--local-addr=$(JOBSET_NAME)-{name}-0-$(JOB_COMPLETION_INDEX).{domain}" in args
        assert f"--rdzv-conf=is_host={str(name == 'learner').lower()},last_call_timeout=5" in args
        assert service["selector"].items() <= labels.items()
        (variable,) = [item for item in container(spec["template"])["env"] if item["name"] == "JOBSET_NAME"]
        path = variable["valueFrom"]["fieldRef"]["fieldPath"]
        assert path == "metadata.labels['jobset.sigs.k8s.io/jobset-name']"


def test_only_the_first_learner_should_have_the_claim() -> None:
    manifests = render(values())
    claim = manifests.get("PersistentVolumeClaim")["metadata"]["name"]
    first, peers = (str(spec["template"]["spec"]["volumes"]) for spec in jobs(manifests).values())
    assert claim in first and claim not in peers


@pytest.mark.parametrize("release", ["demo", "x" * 53])
def test_names_of_pods_should_fit(release: str) -> None:
    manifests = render(values(replicas=1000), release=release)
    name = manifests.get("JobSet")["metadata"]["name"]
    for job, spec in jobs(manifests).items():
        assert len(f"{name}-{job}-0-{spec['completions'] - 1}-abcde") <= LONGEST
    assert f"{name}-learner-0-0." < f"{name}-peers-0-0.", "torchrun numbers pods in the order of their names"


def test_another_number_of_learners_should_be_another_jobset_as_it_is_immutable() -> None:
    names = {render(values(replicas=number)).get("JobSet")["metadata"]["name"] for number in (2, 3)}
    assert len(names) == 2


def test_a_pause_should_suspend_the_jobset_unless_it_is_in_a_queue() -> None:
    assert render(values() | {"paused": True}).get("JobSet")["spec"]["suspend"] is True
    assert not render(values(queueName="gpus") | {"paused": True}).has("JobSet")


def test_a_cluster_without_jobset_should_be_named() -> None:
    apis = [name for name in APIS if not name.startswith("jobset")]
    error = render_error(values(), api_versions=apis)
    assert "learner.workload is job and learner.replicas is 3: several learners are a JobSet" in error
    assert "https://jobset.sigs.k8s.io" in error
    assert render(values(replicas=1), api_versions=apis).has("Job")


def test_a_budget_should_count_all_learners() -> None:
    budget = render(values(podDisruptionBudget={"enabled": True})).get("PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 3


def test_the_fleet_should_wait_for_the_end_of_the_jobset() -> None:
    manifests = render(values())
    name = manifests.get("JobSet")["metadata"]["name"]
    reads, _ = manifests.get("Role", "demo-fleet-end")["rules"]
    assert reads == {
        "apiGroups": ["jobset.x-k8s.io"],
        "resources": ["jobsets"],
        "resourceNames": [name],
        "verbs": ["get"],
    }


def test_the_notes_should_name_the_first_job() -> None:
    with pytest.raises(Exception, match="this cluster has no jobset"):
        notes(values())  # `helm install --dry-run=client` knows no other APIs
