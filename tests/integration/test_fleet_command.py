"""`kubebeast fleet` as a process, with the real client, works against an API server of the test's own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.fleet_api_server import USER, ApiServer, api_server
from tests.unit.observe.fleet import fleet_objects
from tests.unit.observe.fleet.fleet_objects import deployment, env_server_metrics, job, labels, pod, stateful_set

TIMEOUT_S = 300.0
COMMAND = [sys.executable, "-W", "error", "-m", "kubebeast_learner", "fleet"]
LEARNER_METRICS = (
    '# TYPE kubebeast_steps counter\nkubebeast_steps_total{outcome="sampled"} 90\n'
    "# TYPE kubebeast_learner_step gauge\nkubebeast_learner_step 1000\n"
    "# TYPE kubebeast_learner_total_steps gauge\nkubebeast_learner_total_steps 50000\n"
)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A learner and a group of two env-servers, one of which has been killed for its memory."""
    mine = labels("envserver", "kb", "envserver")
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    with api_server() as api:
        api.deployments = [deployment("kb-envserver", "envserver", desired=2, ready=2)]
        api.pods = [
            pod("kb-learner-0", labels("learner")),
            pod("kb-envserver-a", mine),
            pod("kb-envserver-b", mine, restartCount=3, lastState=killed),
        ]
        api.metrics = {
            "kb-learner-0:9091": [LEARNER_METRICS],
            "kb-envserver-a:9091": [env_server_metrics(100), env_server_metrics(1100)],
            "kb-envserver-b:9091": [env_server_metrics(900), env_server_metrics(10)],
        }
        yield api


def environment(kubeconfig: Path | None) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("KUBE", "KUBERNETES")) and "proxy" not in k.lower()
    }
    return kept | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})


def fleet(kubeconfig: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], env=environment(kubeconfig), capture_output=True, text=True, timeout=TIMEOUT_S
    )


def test_the_table_shows_the_fleet_without_colours(api: ApiServer, tmp_path: Path) -> None:
    done = fleet(api.kubeconfig(tmp_path))
    assert (done.returncode, done.stderr) == (0, "") and "\x1b" not in done.stdout
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert rows["learner"] == ["learner", "step", "1,000", "of", "50,000"]
    assert rows["envserver"][:7] == ["envserver", "deployment", "kb-envserver", "2/2", "ready", "3", "4"]
    assert rows["kb-envserver-b"][:6] == ["kb-envserver-b", "ready", "3", "OOMKilled", "2", "-"]


def test_json_is_one_object_with_rates_between_two_scrapes(api: ApiServer, tmp_path: Path) -> None:
    done = fleet(api.kubeconfig(tmp_path), "--json")
    state = json.loads(done.stdout)
    (learner,), (group,) = state["learners"], state["groups"]
    assert (learner["step"], learner["total_steps"], learner["steps_per_second"]) == (1000, 50_000, 0.0)
    growing, started_anew = group["pods"]
    assert growing["steps_per_second"] > 0 and started_anew["steps_per_second"] is None
    assert group["streams"] == 4 and group["steps_per_second"] == growing["steps_per_second"]
    assert state["notes"] == []


def test_a_fleet_of_many_pages_is_seen_whole(api: ApiServer, tmp_path: Path) -> None:
    api.page_items = 7
    api.pods += [pod(f"kb-envserver-{i}", labels("envserver", "kb", "envserver")) for i in range(100)]
    state = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)
    assert len(state["groups"][0]["pods"]) == 102


def test_pods_that_do_not_answer_are_marked_and_the_others_shown(api: ApiServer, tmp_path: Path) -> None:
    api.silent = {"kb-envserver-a:9091"}
    del api.metrics["kb-learner-0:9091"]
    state = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)
    silent, answering = state["groups"][0]["pods"]
    assert (silent["streams"], answering["streams"]) == (None, 2)
    assert state["notes"][0].startswith("pods whose metrics could not be read: 2; kb-envserver-a: ")


def test_without_the_right_to_pods_proxy_the_table_is_shown_with_a_note(api: ApiServer, tmp_path: Path) -> None:
    api.refused = {"pods/proxy"}
    done = fleet(api.kubeconfig(tmp_path))
    assert done.returncode == 0 and "2/2" in done.stdout
    assert f'streams and steps/s are unknown: refused by the API server: User "{USER}"' in done.stdout


def test_watch_goes_on_until_it_is_interrupted_and_outlives_an_outage(api: ApiServer, tmp_path: Path) -> None:
    command = [*COMMAND, "--watch", "--json"]
    config = environment(api.kubeconfig(tmp_path))
    with subprocess.Popen(command, env=config, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            first = json.loads(process.stdout.readline())
            api.failing = True
            outage = json.loads(process.stdout.readline())
            while not outage["notes"]:
                outage = json.loads(process.stdout.readline())
            api.failing = False
            after = json.loads(process.stdout.readline())
            while after["notes"]:
                after = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 130
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert "not up to date: the API server answers 503" in outage["notes"][0]
    assert len(first["groups"]) == len(outage["groups"]) == len(after["groups"]) == 1


def test_scale_patches_the_scale_of_the_groups_deployment(api: ApiServer, tmp_path: Path) -> None:
    api.autoscalers = [fleet_objects.autoscaler("other", "another-deployment")]
    done = fleet(api.kubeconfig(tmp_path), "scale", "envserver", "8")
    assert (done.returncode, done.stdout, done.stderr) == (0, "envserver: 2 -> 8\n", "")
    path = "apis/apps/v1/namespaces/train/deployments/kb-envserver/scale"
    assert api.patches == [(path, {"spec": {"replicas": 8}})]


def test_an_autoscaled_group_is_scaled_by_force_only(api: ApiServer, tmp_path: Path) -> None:
    api.autoscalers = [fleet_objects.autoscaler("busy", "kb-envserver")]
    done = fleet(api.kubeconfig(tmp_path), "scale", "envserver", "8")
    assert done.returncode == 1 and api.patches == []
    assert "HorizontalPodAutoscaler busy (1 to 16 replicas)" in done.stderr and "--force" in done.stderr
    assert fleet(api.kubeconfig(tmp_path), "scale", "envserver", "0", "--force").returncode == 0
    assert [body for _, body in api.patches] == [{"spec": {"replicas": 0}}]


def test_who_may_not_list_autoscalers_may_scale(api: ApiServer, tmp_path: Path) -> None:
    api.refused = {"horizontalpodautoscalers"}
    assert fleet(api.kubeconfig(tmp_path), "scale", "kb-envserver", "3").stdout == "envserver: 2 -> 3\n"


def test_a_refusal_prints_the_role_that_allows_everything(api: ApiServer, tmp_path: Path) -> None:
    api.refused = {"deployments"}
    done = fleet(api.kubeconfig(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f'kubebeast fleet: refused by the API server: User "{USER}" cannot use')
    role = yaml.safe_load(done.stderr.partition("\n\n")[2])
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "train")
    assert {r for rule in role["rules"] for r in rule["resources"]} == {
        "deployments",
        "deployments/scale",
        "statefulsets",
        "jobs",
        "events",
        "pods",
        "pods/proxy",
        "horizontalpodautoscalers",
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-n", "nowhere"], "namespace = 'nowhere': there is none of that name"),
        (["--release", "nobody"], "release = 'nobody': namespace train has env-servers of kb"),
        (["--context", "nothing"], "kubeconfig"),
        (["scale", "chess", "3"], "group = 'chess': groups of env-servers in namespace train: envserver"),
    ],
)
def test_what_is_not_there_is_named_on_one_line(api: ApiServer, tmp_path: Path, words: list[str], reason: str) -> None:
    done = fleet(api.kubeconfig(tmp_path), *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr and done.stderr.count("\n") == 1


def test_bad_credentials_are_named_on_one_line(api: ApiServer, tmp_path: Path) -> None:
    done = fleet(api.kubeconfig(tmp_path, token="stale"))
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"the API server {api.address} does not accept the credentials: Unauthorized" in done.stderr


def test_an_api_server_that_is_not_there_is_named_on_one_line(tmp_path: Path) -> None:
    with api_server() as api:
        kubeconfig = api.kubeconfig(tmp_path)
    done = fleet(kubeconfig)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"the API server {api.address} cannot be reached" in done.stderr


def test_a_missing_kubeconfig_is_named_on_one_line(tmp_path: Path) -> None:
    done = fleet(tmp_path / "nothing")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"kubeconfig {tmp_path / 'nothing'} cannot be used: there is no such file" in done.stderr


def test_an_empty_namespace_is_no_error(api: ApiServer, tmp_path: Path) -> None:
    api.deployments, api.pods = [], []
    done = fleet(api.kubeconfig(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == ["namespace train", "namespace train has no env-servers", ""]


QUOTA = 'pods "kb-learner-0" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=4, limited: cpu=4'


def test_what_may_not_be_created_is_shown_with_the_reason(api: ApiServer, tmp_path: Path) -> None:
    api.pods = []
    api.stateful_sets = [stateful_set("kb-learner", current=0)]
    api.events = [
        fleet_objects.warning("StatefulSet", "kb-learner", "FailedCreate", QUOTA, "2026-01-01T00:09:00Z"),
        fleet_objects.warning("StatefulSet", "kb-learner", "FailedCreate", "an older reason", "2026-01-01T00:01:00Z"),
    ]
    refused = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "admission webhook denied it",
    }
    api.deployments[0]["status"] = {"conditions": [refused]}
    notes = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)["notes"]
    assert f"statefulset kb-learner: FailedCreate: {QUOTA}" in notes
    assert "deployment kb-envserver: FailedCreate: admission webhook denied it" in notes


@pytest.mark.parametrize("component", ["evaluator", "named-evaluator"])
def test_an_evaluator_that_may_not_be_created_or_cannot_start_is_shown(
    component: str, api: ApiServer, tmp_path: Path
) -> None:
    evaluator = deployment("kb-evaluator", "envserver", desired=1, ready=0)
    evaluator["metadata"]["labels"] |= labels(component, "kb")
    evaluator["spec"]["selector"] = {"matchLabels": labels(component, "kb")}
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: small"}
    evaluator["status"] = {"conditions": [refused]}
    api.deployments.append(evaluator)
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    api.pods.append(pod("kb-evaluator-a", labels(component, "kb"), ready=False, state=waiting))
    state = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)
    assert "deployment kb-evaluator: FailedCreate: exceeded quota: small" in state["notes"]
    assert "pod kb-evaluator-a: ErrImagePull: no such image" in state["notes"]
    assert [group["deployment"] for group in state["groups"]] == ["kb-envserver"]


def test_a_claim_that_finds_no_volume_is_shown_with_the_reason(api: ApiServer, tmp_path: Path) -> None:
    learner = api.pods[0]
    message = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    learner["status"] = {"phase": "Pending", "conditions": [condition]}
    learner["spec"]["volumes"] = [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs-kb-learner-0"}}]
    api.events = [
        fleet_objects.warning(
            "PersistentVolumeClaim", "runs-kb-learner-0", "ProvisioningFailed", "no StorageClass fast"
        )
    ]
    notes = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)["notes"]
    assert f"pod kb-learner-0: Unschedulable: {message}" in notes
    assert "claim runs-kb-learner-0: ProvisioningFailed: no StorageClass fast" in notes


def test_pods_that_wait_for_the_same_reason_are_one_line(api: ApiServer, tmp_path: Path) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    mine = labels("envserver", "kb", "envserver")
    api.pods = [pod(f"kb-envserver-{name}", mine, ready=False, state=waiting) for name in "abc"]
    assert "pod kb-envserver-a and 2 more: ErrImagePull: no such image" in fleet(api.kubeconfig(tmp_path)).stdout


def test_a_paused_release_is_called_paused(api: ApiServer, tmp_path: Path) -> None:
    api.pods, api.deployments = [], [deployment("kb-envserver", "envserver", desired=0, ready=0)]
    api.stateful_sets = [stateful_set("kb-learner", desired=0, current=0)]
    done = fleet(api.kubeconfig(tmp_path))
    assert "release kb is paused" in done.stdout and "paused=false" in done.stdout


@pytest.mark.parametrize(
    ("item", "note"),
    [
        (job("kb-learner-1", ended="Complete"), "the training of release kb is complete: job kb-learner-1"),
        (job("kb-learner-1", ended="Failed"), "the training of release kb has failed: job kb-learner-1: IsFailed"),
        (job("kb-learner-1", suspend=True), "release kb is paused"),
        (job("kb-learner-1", suspend=True, queue="gpus"), "release kb waits for quota in the queue gpus"),
        (job("kb-learner-1", queue="gpus"), ""),
        (
            job("kb-sweep-1", component="sweep", ended="Complete"),
            "the training of release kb is complete: job kb-sweep",
        ),
    ],
)
def test_the_state_of_a_job_is_told(item: dict[str, Any], note: str, api: ApiServer, tmp_path: Path) -> None:
    api.jobs = [job("kb-000-seed1", run="000-seed1", ended="Failed"), item]  # that of a run says nothing
    notes = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)["notes"]
    assert [each.startswith(note) for each in notes] == [True] * bool(note)


def test_a_job_without_a_pod_is_shown_with_the_reason(api: ApiServer, tmp_path: Path) -> None:
    api.jobs = [job("kb-learner-1") | {"status": {}}]
    api.events = [fleet_objects.warning("Job", "kb-learner-1", "FailedCreate", QUOTA)]
    assert f"job kb-learner-1: FailedCreate: {QUOTA}" in fleet(api.kubeconfig(tmp_path)).stdout


def test_pods_of_former_attempts_are_not_shown(api: ApiServer, tmp_path: Path) -> None:
    def attempt(name: str, phase: str, created_at: str) -> dict[str, Any]:
        item = pod(name, labels("learner"), ready=phase == "Running")
        item["status"]["phase"], item["metadata"]["creationTimestamp"] = phase, created_at
        return item

    former = [attempt(f"kb-learner-{day}", "Failed", f"2026-01-0{day}T00:00:00Z") for day in (3, 2)]
    api.pods = [*former, attempt("kb-learner-1", "Running", "2026-01-01T00:00:00Z")]
    assert [item["pod"] for item in learners(api, tmp_path)] == ["kb-learner-1"]
    api.pods = former
    assert [item["pod"] for item in learners(api, tmp_path)] == ["kb-learner-3"], "the newest"


def learners(api: ApiServer, folder: Path) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(fleet(api.kubeconfig(folder), "--json").stdout)["learners"]
    return shown


def test_a_role_without_events_is_named_where_a_reason_is_missed(api: ApiServer, tmp_path: Path) -> None:
    api.stateful_sets, api.refused = [stateful_set("kb-learner", current=0)], {"events"}
    done = fleet(api.kubeconfig(tmp_path))
    assert (
        done.returncode == 0
        and f'statefulset kb-learner: unknown: refused by the API server: User "{USER}"' in done.stdout
    )


def test_an_older_role_shows_the_fleet_without_stateful_sets_and_jobs(api: ApiServer, tmp_path: Path) -> None:
    api.refused = {"statefulsets", "jobs", "events"}
    state = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)
    assert len(state["groups"][0]["pods"]) == 2 and state["notes"] == []


def test_two_charts_of_one_release_are_told_apart(api: ApiServer, tmp_path: Path) -> None:
    """Their selectors are those of an older chart, which did not separate them."""
    mine = labels("envserver", "games", "envserver")
    named = {colour: mine | {"kubebeast/name": f"games-{colour}"} for colour in ("red", "blue")}
    api.deployments = [deployment(f"games-{colour}", "envserver", "games") for colour in named]
    for item, found in zip(api.deployments, named.values(), strict=True):
        item["metadata"]["labels"] = found
    api.pods = [pod(f"games-{colour}-x", found) for colour, found in named.items()]
    groups = json.loads(fleet(api.kubeconfig(tmp_path), "--json").stdout)["groups"]
    shown = {group["release"]: [one["pod"] for one in group["pods"]] for group in groups}
    assert shown == {"games-red": ["games-red-x"], "games-blue": ["games-blue-x"]}
