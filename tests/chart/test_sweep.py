"""A sweep in place of a learner: a Job that creates those of the runs, and a broker for the env-servers."""

from typing import Any

import pytest
import yaml

from tests.chart.chart import Manifests, Object, container, environment, notes, render, render_error

FILE: dict[str, Any] = {"settings": {"total_steps": 50_000_000}, "parameters": {"learning_rate": [0.001, 0.002]}}
GROUP = {"catch": {"env": "Catch-v0"}}


def with_sweep(file: Any = None, learner: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    return {"sweep": {"file": FILE if file is None else file}, "envservers": GROUP, "learner": learner or {}, **values}


def content_of(manifests: Manifests, name: str) -> Any:
    """Returns a file of the sweep."""
    return yaml.safe_load(manifests.get("ConfigMap", "demo-sweep")["data"][name])


def sweep_job(manifests: Manifests) -> Object:
    (job,) = [job for job in manifests.of_kind("Job") if job["metadata"]["name"].startswith("demo-sweep-")]
    return job


def broker(manifests: Manifests) -> Object:
    pod: Object = manifests.get("Deployment", "demo-broker")["spec"]["template"]
    return pod


def test_the_settings_should_be_those_of_the_learner_and_of_the_file() -> None:
    learner = {"recipe": "torchbeast", "config": {"unroll_length": 40, "learning_rate": 0.1, "total_steps": 5}}
    read = content_of(render(with_sweep(learner=learner)), "sweep.yaml")
    assert read["command"] == "learner" and read["recipe"] == "torchbeast"
    assert read["settings"] == {
        "checkpoint_interval_minutes": 5,
        "env": "Catch-v0",
        "total_steps": 50_000_000,
        "unroll_length": 40,
    }
    assert isinstance(read["settings"]["total_steps"], int)
    assert read["parameters"] == FILE["parameters"]


def test_a_text_should_stay_as_it_is() -> None:
    text = (
        "command: learner\nsettings: {env: Catch-v0, total_steps: 10}\nparameters: {discounting: {range: [0.0, 1.0]}}"
    )
    data = render(with_sweep(text)).get("ConfigMap", "demo-sweep")["data"]
    assert data["sweep.yaml"].strip() == text


def test_a_run_should_be_a_job_with_the_pod_of_a_learner() -> None:
    manifests = render(with_sweep(learner={"extraEnv": [{"name": "A", "value": "b"}], "queueName": "gpus"}))
    job = content_of(manifests, "job.yaml")
    pod = job["spec"]["template"]
    assert not manifests.has("StatefulSet") and not manifests.has("ConfigMap", "demo-learner")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert pod["spec"]["restartPolicy"] == "Never" and "args" not in container(pod)
    assert environment(pod) == {"KUBEBEAST_ADDRESS": "[::]:4431", "KUBEBEAST_HTTP_ADDRESS": "[::]:9090", "A": "b"}
    service = manifests.get("Service", "demo-learner")["spec"]["selector"]
    assert service.items() <= pod["metadata"]["labels"].items(), "the learners are scraped"
    claims = [volume.get("persistentVolumeClaim") for volume in pod["spec"]["volumes"]]
    assert {"claimName": "runs-demo-learner-0"} in claims
    assert manifests.has("PersistentVolumeClaim", "runs-demo-learner-0")


def test_a_gpu_should_be_demanded_by_each_run() -> None:
    pod = content_of(render(with_sweep(learner={"gpu": {"count": 1}})), "job.yaml")["spec"]["template"]
    assert environment(pod)["KUBEBEAST_DEVICE"] == "cuda"
    assert container(pod)["resources"]["limits"] == {"nvidia.com/gpu": "1"}


def test_env_servers_should_ask_the_broker_and_play_for_any_run() -> None:
    manifests = render(with_sweep())
    env_server = environment(manifests.get("Deployment", "demo-catch")["spec"]["template"])
    assert env_server["KUBEBEAST_ADDRESS"] == "broker:demo-broker.training.svc:4432"
    assert "KUBEBEAST_RUN" not in env_server
    assert environment(broker(manifests)) == {"KUBEBEAST_ADDRESS": "[::]:4432", "KUBEBEAST_HTTP_ADDRESS": "[::]:9092"}
    labels = manifests.get("Deployment", "demo-broker")["spec"]["template"]["metadata"]["labels"]
    assert manifests.get("Service", "demo-broker")["spec"]["selector"].items() <= labels.items()


def test_the_sweep_should_own_its_jobs_and_go_on_after_a_signal() -> None:
    spec = sweep_job(render(with_sweep()))["spec"]
    args = container(spec["template"])["args"]
    assert {"--job-owner=$(JOB_NAME)/$(JOB_UID)", "--stop-status=143", "--broker=demo-broker.training.svc:4432"} <= set(
        args
    )
    ignored = [rule["onExitCodes"]["values"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert ignored == [[143], [1, 2]]


def test_only_the_sweep_should_have_credentials_and_only_for_jobs() -> None:
    manifests = render(with_sweep())
    rules = {(*rule["resources"], *rule["verbs"]) for rule in manifests.get("Role", "demo-sweep")["rules"]}
    assert rules == {("jobs", "create", "delete", "list"), ("pods", "list"), ("pods/log", "get")}
    assert manifests.get("RoleBinding", "demo-sweep")["subjects"][0]["name"] == "demo-sweep"
    assert sweep_job(manifests)["spec"]["template"]["spec"]["serviceAccountName"] == "demo-sweep"
    run = content_of(manifests, "job.yaml")["spec"]["template"]["spec"]
    assert run["serviceAccountName"] == "demo-learner" and run["automountServiceAccountToken"] is False


def test_a_change_should_be_another_job_with_the_same_trials() -> None:
    one, other = render(with_sweep()), render(with_sweep({**FILE, "num_trials": 9}))
    assert sweep_job(one)["metadata"]["name"] != sweep_job(other)["metadata"]["name"]
    for manifests in (one, other):
        assert "--name=demo" in container(sweep_job(manifests)["spec"]["template"])["args"]


def test_the_end_of_the_sweep_should_be_that_of_its_env_servers() -> None:
    manifests = render(with_sweep())
    (end,) = [job for job in manifests.of_kind("Job") if job["metadata"]["name"].startswith("demo-fleet-end-")]
    workload = next(part for part in container(end["spec"]["template"])["command"] if "--workload" in part)
    assert workload.endswith(f"/jobs/{sweep_job(manifests)['metadata']['name']}")


def test_a_pause_should_delete_the_job_and_with_it_those_of_the_runs() -> None:
    manifests = render(with_sweep(paused=True))
    assert manifests.of_kind("Job") == []
    assert manifests.get("Deployment", "demo-broker")["spec"]["replicas"] == 0
    assert manifests.has("PersistentVolumeClaim", "runs-demo-learner-0")


@pytest.mark.parametrize(("mode", "is_one_node"), [("ReadWriteOnce", True), ("ReadWriteMany", False)])
def test_pods_should_share_a_node_only_if_their_claim_demands_it(mode: str, is_one_node: bool) -> None:
    manifests = render(with_sweep(learner={"persistence": {"accessModes": [mode]}}))
    pods = [sweep_job(manifests)["spec"]["template"], content_of(manifests, "job.yaml")["spec"]["template"]]
    assert ["affinity" in pod["spec"] for pod in pods] == [is_one_node] * 2


def test_everybody_should_verify_the_broker() -> None:
    manifests = render("sweep")
    env_server = environment(manifests.get("Deployment", "demo-cartpole")["spec"]["template"])
    run = environment(content_of(manifests, "job.yaml")["spec"]["template"])
    (certificate,) = manifests.of_kind("Certificate")
    assert env_server["KUBEBEAST_TLS_SERVER_NAME"] == "demo-broker.training.svc"
    assert run["KUBEBEAST_BROKER_TLS_CA"] == "/etc/kubebeast/access/ca.crt" and "KUBEBEAST_TLS_CA" not in run
    assert {"KUBEBEAST_TLS_CERT", "KUBEBEAST_TLS_KEY", "KUBEBEAST_TOKEN_FILE"} <= environment(broker(manifests)).keys()
    assert "demo-broker.training.svc" in certificate["spec"]["dnsNames"]


def test_policies_should_let_streams_reach_the_broker_and_the_runs() -> None:
    manifests = render("sweep")
    egress = manifests.get("NetworkPolicy", "demo-envserver")["spec"]["egress"]
    peers = {
        rule["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: rule["ports"][0]["port"]
        for rule in egress
        if "to" in rule
    }
    assert peers == {"broker": 4432, "learner": 4431}
    ingress = manifests.get("NetworkPolicy", "demo-broker")["spec"]["ingress"][0]
    assert len(ingress["from"]) == 2 and ingress["ports"] == [{"port": 4432, "protocol": "TCP"}]
    assert manifests.has("PodMonitor", "demo-broker")


def test_the_notes_should_name_the_sweep() -> None:
    text = notes(with_sweep())
    assert 'the sweep "demo", 4 runs at a time' in text and "kubebeast/sweep=demo" in text


@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        ({"replicas": 2}, "learner.replicas is 2"),
        ({"command": ["python"]}, "learner.command is set"),
        ({"extraArgs": ["--mono"]}, "learner.extraArgs is set"),
        ({"storage": {"url": "s3://bucket/runs"}}, "a sweep needs a claim"),
        ({"persistence": {"enabled": False}}, "learner.persistence.enabled is false"),
        ({"persistence": {"accessModes": ["ReadWriteOncePod"]}}, "ReadWriteOncePod"),
        ({"externalService": {"enabled": True}}, "externalService.enabled"),
    ],
)
def test_values_that_no_sweep_can_have_should_be_refused(learner: dict[str, Any], reason: str) -> None:
    assert reason in render_error(with_sweep(learner=learner))


def test_a_sweep_without_parameters_should_be_refused() -> None:
    assert "parameters" in render_error(with_sweep({"settings": {"total_steps": 5}, "parameters": {}}))
