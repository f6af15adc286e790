"""The learner as a Job: it is complete after the last step, goes on after everything else, and frees what it holds."""

import re
from typing import Any

import pytest
import yaml

from tests.chart.chart import Manifests, Object, container, notes, render, render_error

JOB: dict[str, Any] = {"learner": {"workload": "job"}}


def with_job(learner: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    return {"learner": {"workload": "job", **(learner or {})}, **values}


def learner_job(values: dict[str, Any], kube_version: str = "1.37.0") -> Object:
    """Returns the only Job of the learner."""
    (job,) = [
        item
        for item in render(values, kube_version=kube_version).of_kind("Job")
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == "learner"
    ]
    return job


def settings(manifests: Manifests) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    return read


def test_a_job_should_take_the_place_of_the_statefulset_and_nothing_else() -> None:
    job, usual = render(JOB), render()
    assert not job.has("StatefulSet")
    template = learner_job(JOB)["spec"]["template"]
    other = usual.get("StatefulSet")["spec"]["template"]
    assert template["spec"]["restartPolicy"] == "Never"
    assert container(template) == container(other)
    assert template["metadata"]["labels"] == other["metadata"]["labels"]
    for kind in ("Service", "Deployment"):
        assert job.of_kind(kind) == usual.of_kind(kind)
    selector = job.get("Service", "demo-learner")["spec"]["selector"]
    assert selector.items() <= template["metadata"]["labels"].items(), "env-servers dial this name"


def test_a_learner_that_is_stopped_should_not_be_taken_for_a_finished_one() -> None:
    ends = {"linger": True, "linger_s": 45, "stop_status": 143, "wait_for_run": True}
    assert ends.items() <= settings(render(JOB)).items()
    assert "linger" not in settings(render(with_job({"job": {"lingerSeconds": 0}})))
    usual = settings(render())
    assert usual["linger"] is True and ends.keys() & usual.keys() == {"linger"}


def test_only_failures_should_count_and_a_wrong_setting_should_fail_at_once() -> None:
    spec = learner_job(JOB)["spec"]
    rules = {
        (rule["action"], str(rule["onPodConditions"] or rule["onExitCodes"]["values"]))
        for rule in spec["podFailurePolicy"]["rules"]
    }
    assert rules == {
        ("Ignore", "[{'type': 'DisruptionTarget', 'status': 'True'}]"),
        ("Ignore", "[143]"),
        ("FailJob", "[2]"),
    }
    assert spec["backoffLimit"] == 20
    assert "podFailurePolicy" not in learner_job(JOB, "1.25.0")["spec"], "it is off by default there"


def test_the_exit_status_of_another_trainer_should_not_be_interpreted() -> None:
    rules = learner_job(with_job({"command": ["mine"]}))["spec"]["podFailurePolicy"]["rules"]
    assert {rule["action"] for rule in rules} == {"Ignore"}


@pytest.mark.parametrize(
    ("changed", "is_another"),
    [
        ({"config": {"total_steps": 7}}, True),
        ({"image": {"tag": "other"}}, True),
        ({"resources": {"requests": {"cpu": "3"}}}, True),
        ({"labels": {"team": "a"}}, False),
        ({"queueName": "gpus"}, False),
        ({"job": {"ttlSecondsAfterFinished": 60}}, False),
        ({"service": {"annotations": {"a": "b"}}}, False),
    ],
)
def test_a_changed_pod_should_be_another_job_as_it_is_immutable(changed: dict[str, Any], is_another: bool) -> None:
    name, other = (learner_job(with_job(values))["metadata"]["name"] for values in ({}, changed))
    assert re.fullmatch(r"demo-learner-[0-9a-f]{8}", name)
    assert (name != other) is is_another


def test_env_servers_and_versions_should_not_replace_the_job() -> None:
    name = learner_job(JOB)["metadata"]["name"]
    assert learner_job(with_job(envserverDefaults={"replicas": 9}))["metadata"]["name"] == name
    assert learner_job(with_job(paused=True))["metadata"]["name"] == name


def test_a_pause_should_suspend_the_job() -> None:
    paused = with_job(paused=True)
    assert learner_job(paused)["spec"]["suspend"] is True
    assert "suspend" not in learner_job(JOB)["spec"], "a controller of queues sets it"
    old = learner_job(paused, "1.21.0")["spec"]
    assert (old["parallelism"], "suspend" in old) == (0, False)
    assert render(paused).get("Deployment")["spec"]["replicas"] == 0
    assert render(paused).of_kind("Job") == [learner_job(paused)], "nobody waits for its end"


def test_a_pause_should_delete_a_job_in_a_queue_as_kueue_would_start_it_again() -> None:
    assert not render(with_job({"queueName": "gpus"}, paused=True)).has("Job")
    assert render(with_job({"queueName": "gpus"})).has("Job")


def test_the_claim_should_be_that_of_the_statefulset_and_outlive_the_release() -> None:
    persistence = {"size": "7Gi", "storageClassName": "fast", "annotations": {"a": "b"}}
    claim = render(with_job({"persistence": persistence})).get("PersistentVolumeClaim")
    (template,) = render({"learner": {"persistence": persistence}}).get("StatefulSet")["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == f"{template['metadata']['name']}-demo-learner-0"
    assert claim["spec"] == template["spec"]
    assert claim["metadata"]["annotations"] == {"a": "b", "helm.sh/resource-policy": "keep"}
    (volume,) = [item for item in learner_job(JOB)["spec"]["template"]["spec"]["volumes"] if item["name"] == "runs"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    deleted = with_job({"persistence": {"retention": {"whenDeleted": "Delete"}}})
    assert "annotations" not in render(deleted).get("PersistentVolumeClaim")["metadata"]


@pytest.mark.parametrize(
    "learner",
    [
        {"storage": {"url": "s3://bucket/runs"}},
        {"persistence": {"existingClaim": "mine"}},
        {"persistence": {"enabled": False}},
    ],
)
def test_no_claim_should_be_created_without_need(learner: dict[str, Any]) -> None:
    assert not render(with_job(learner)).has("PersistentVolumeClaim")
    assert not render().has("PersistentVolumeClaim")


def test_several_gpus_of_one_pod_should_meet_in_the_pod() -> None:
    """A successor starts before the predecessor has left the Service: under a name, it could meet that one."""
    args = container(learner_job(with_job({"gpu": {"count": 4}}))["spec"]["template"])["args"]
    assert {"--nnodes=1", "--nproc-per-node=4", "--rdzv-endpoint=localhost:29400", "--local-addr=localhost"} < set(args)


def test_a_budget_should_have_the_only_bound_that_counts_pods_of_jobs() -> None:
    budget = {"podDisruptionBudget": {"enabled": True}}
    assert render(with_job(budget)).get("PodDisruptionBudget")["spec"]["minAvailable"] == 1
    for bound in ({"maxUnavailable": 1}, {"minAvailable": "50%"}):
        error = render_error(with_job({"podDisruptionBudget": {"enabled": True, **bound}}))
        assert "takes only minAvailable with a number" in error


def test_an_autoscaler_that_wakes_an_ended_fleet_should_be_refused() -> None:
    keda = {"autoscaling": {"keda": {"enabled": True, "prometheusAddress": "x"}}}
    assert 'KEDA would start the group "envserver" again' in render_error(with_job(envserverDefaults=keda))
    assert render({"envserverDefaults": keda}).has("ScaledObject")
    assert render(with_job(envserverDefaults={"autoscaling": {"hpa": {"enabled": True}}})).has("Job")


def test_an_ended_job_may_be_deleted_after_some_time() -> None:
    assert "ttlSecondsAfterFinished" not in learner_job(JOB)["spec"]
    assert learner_job(with_job({"job": {"ttlSecondsAfterFinished": 0}}))["spec"]["ttlSecondsAfterFinished"] == 0


@pytest.mark.parametrize(
    ("learner", "labels"),
    [
        ({"gpu": {"count": 2}}, set()),
        ({"replicas": 2}, {"jobset.sigs.k8s.io/replicatedjob-name"}),
        ({"workload": "statefulset", "replicas": 2}, {"statefulset.kubernetes.io/pod-name"}),
    ],
)
def test_the_evaluator_should_follow_the_learner_that_has_the_claim(learner: dict[str, Any], labels: set[str]) -> None:
    manifests = render(with_job(learner, evaluator={"enabled": True, "image": {"repository": "eval"}}))
    spec = manifests.get("Deployment", "demo-evaluator")["spec"]["template"]["spec"]
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    own = {name for name in term["labelSelector"]["matchLabels"] if not name.startswith("app.kubernetes.io/")}
    assert own == labels
    assert "runs-demo-learner-0" in str(spec["volumes"])


def test_the_notes_should_name_the_job_and_its_end() -> None:
    text, name = notes(JOB), re.escape("demo-learner-")
    assert re.search(rf"kubectl -n training logs -f job/{name}[0-9a-f]{{8}}\n", text)
    assert re.search(rf"wait --for=condition=complete --timeout=-1s job/{name}[0-9a-f]{{8}}\n", text)
    assert "statefulset" not in text


def test_a_learner_elsewhere_should_be_no_job() -> None:
    elsewhere = with_job({"enabled": False, "address": "a:1"})
    assert not render(elsewhere).has("Job")
