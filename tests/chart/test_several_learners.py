"""Several learners train one model: torchrun in every pod, a claim for the first, env-servers that know all."""

from typing import Any

import pytest

from tests.chart.chart import Manifests, Object, container, notes, render, render_error

TWO = {"learner": {"replicas": 2}}
FIRST, PEERS = "demo-learner", "demo-peers"


def arguments(manifests: Manifests, name: str) -> list[str]:
    args: list[str] = container(manifests.get("StatefulSet", name)["spec"]["template"])["args"]
    return args


def variables(manifests: Manifests, kind: str, name: str) -> dict[str, Any]:
    entries = container(manifests.get(kind, name)["spec"]["template"]).get("env", [])
    return {entry["name"]: entry.get("value") for entry in entries}


def test_one_learner_should_know_nothing_of_several() -> None:
    manifests = render()
    learner = manifests.get("StatefulSet")
    assert "command" not in container(learner["spec"]["template"])
    assert arguments(manifests, FIRST)[0] == "learner"
    assert "env" not in container(learner["spec"]["template"])
    assert "publishNotReadyAddresses" not in manifests.get("Service", "demo-learner-headless")["spec"]


@pytest.mark.parametrize(("replicas", "peers"), [(2, 1), (5, 4)])
def test_all_learners_but_the_first_should_be_peers_without_a_claim(replicas: int, peers: int) -> None:
    manifests = render({"learner": {"replicas": replicas}})
    first, others = (manifests.get("StatefulSet", name)["spec"] for name in (FIRST, PEERS))
    assert (first["replicas"], others["replicas"]) == (1, peers)
    assert [claim["metadata"]["name"] for claim in first["volumeClaimTemplates"]] == ["runs"]
    assert "volumeClaimTemplates" not in others
    assert {"name": "runs", "emptyDir": {}} in others["template"]["spec"]["volumes"]


def test_peers_should_not_mount_a_claim_of_the_user() -> None:
    manifests = render({"learner": {"replicas": 2, "persistence": {"existingClaim": "mine"}}})
    assert "mine" in str(manifests.get("StatefulSet", FIRST))
    assert "mine" not in str(manifests.get("StatefulSet", PEERS))


def test_learners_should_meet_in_the_first_pod_before_any_is_ready() -> None:
    manifests = render(TWO)
    where = "demo-learner-0.demo-learner-headless.training.svc:29400"
    for name, is_host in ((FIRST, "true"), (PEERS, "false")):
        args = arguments(manifests, name)
        assert (
            container(manifests.get("StatefulSet", name)["spec"]["template"])["command"][-1] == "torch.distributed.run"
        )
        assert f"--rdzv-endpoint={where}" in args
        assert f"--rdzv-conf=is_host={is_host},last_call_timeout=5" in args
        assert "--nnodes=1:1000" in args
        assert args[args.index("kubebeast_learner") :][1] == "learner"
        assert manifests.get("StatefulSet", name)["spec"]["serviceName"] == "demo-learner-headless"
        assert manifests.get("StatefulSet", name)["spec"]["podManagementPolicy"] == "Parallel"
        assert variables(manifests, "StatefulSet", name)["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert manifests.get("Service", "demo-learner-headless")["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.parametrize("release", ["a", "x" * 53, "demo"])
def test_the_first_pod_should_be_the_first_in_the_order_of_torchrun(release: str) -> None:
    first, peers = (item["metadata"]["name"] for item in render(TWO, release=release).of_kind("StatefulSet"))
    assert sorted([f"{peers}-{index}." for index in range(12)] + [f"{first}-0."])[0] == f"{first}-0."
    assert len(f"{peers}-0123456789") <= 63


def test_the_number_of_learners_should_not_touch_pods_that_train() -> None:
    two, three = (render({"learner": {"replicas": replicas}}).pod_templates() for replicas in (2, 3))
    assert two == three


def test_every_gpu_should_be_a_learner_with_ports_of_its_own() -> None:
    manifests = render("several-learners")
    for name in (FIRST, PEERS):
        assert "--nproc-per-node=2" in arguments(manifests, name)
        ports = container(manifests.get("StatefulSet", name)["spec"]["template"])["ports"]
        assert {port["name"]: port["containerPort"] for port in ports} == {
            "grpc": 4431,
            "http": 9090,
            "grpc-1": 4432,
            "http-1": 9091,
        }
    ports = {port["name"]: port["port"] for port in manifests.get("Service", FIRST)["spec"]["ports"]}
    assert ports == {"grpc": 4431, "http": 9090, "grpc-1": 4432, "http-1": 9091}
    scraped = [endpoint["port"] for endpoint in manifests.get("ServiceMonitor")["spec"]["endpoints"]]
    assert scraped == ["http", "http-1"]


def test_several_gpus_of_one_pod_should_need_no_peers() -> None:
    manifests = render({"learner": {"gpu": {"count": 4}}})
    assert "--nnodes=1" in arguments(manifests, FIRST)
    assert not manifests.has("StatefulSet", PEERS)
    assert address(manifests) == "dns:demo-learner-headless.training.svc:4431-4434"


def address(manifests: Manifests) -> str:
    return str(variables(manifests, "Deployment", "demo-envserver")["KUBEBEAST_ADDRESS"])


def test_env_servers_should_choose_among_the_addresses_of_all_learners() -> None:
    assert address(render(TWO)) == "dns:demo-learner-headless.training.svc:4431"
    assert address(render()) == "demo-learner.training.svc:4431"


def test_env_servers_should_expect_the_certificate_of_the_service() -> None:
    tls = {"tls": {"enabled": True, "existingSecret": "tls"}}
    name = "KUBEBEAST_TLS_SERVER_NAME"
    assert variables(render(TWO | tls), "Deployment", "demo-envserver")[name] == "demo-learner.training.svc"
    assert name not in variables(render(tls), "Deployment", "demo-envserver")
    own = {"tls": {"enabled": True, "existingSecret": "tls", "serverName": "mine"}}
    assert variables(render(TWO | own), "Deployment", "demo-envserver")[name] == "mine"


def test_learners_should_reach_every_port_of_each_other() -> None:
    ingress = render("several-learners").get("NetworkPolicy", FIRST)["spec"]["ingress"]
    among = [rule for rule in ingress if "ports" not in rule]
    (peer,) = among[0]["from"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "learner"
    assert [port["port"] for port in ingress[0]["ports"]] == [4431, 4432]
    alone = render({"networkPolicy": {"enabled": True}}).get("NetworkPolicy", FIRST)["spec"]["ingress"]
    assert all("ports" in rule for rule in alone)


def test_services_and_budget_should_select_first_and_peers() -> None:
    manifests = render("several-learners")
    selectors: list[Object] = [
        manifests.get("Service", FIRST)["spec"]["selector"],
        manifests.get("Service", "demo-learner-headless")["spec"]["selector"],
        manifests.get("PodDisruptionBudget", FIRST)["spec"]["selector"]["matchLabels"],
    ]
    for name in (FIRST, PEERS):
        labels = manifests.get("StatefulSet", name)["spec"]["template"]["metadata"]["labels"]
        assert all(selector.items() <= labels.items() for selector in selectors)
        assert manifests.get("StatefulSet", name)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"


def test_no_learner_should_be_evicted_as_all_would_start_again() -> None:
    budget = {"learner": {"replicas": 2, "podDisruptionBudget": {"enabled": True}}}
    assert render(budget).get("PodDisruptionBudget")["spec"]["maxUnavailable"] == 0


def test_the_evaluator_should_follow_the_first_learner_that_has_the_claim() -> None:
    values = TWO | {"evaluator": {"enabled": True, "image": {"repository": "eval"}}}
    affinity = render(values).get("Deployment", "demo-evaluator")["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"]["statefulset.kubernetes.io/pod-name"] == "demo-learner-0"


def test_a_pause_should_take_all_learners_away() -> None:
    manifests = render(TWO | {"paused": True})
    assert [item["spec"]["replicas"] for item in manifests.of_kind("StatefulSet")] == [0, 0]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"learner": {"replicas": 2, "command": ["mine"]}}, "learner.command is another trainer"),
        ({"learner": {"replicas": 2, "enabled": False, "address": "a:1"}}, "learner.enabled is false"),
        (
            {"learner": {"gpu": {"count": 2}, "enabled": False, "address": "a:1"}},
            "learner.gpu.count is 2, but learner.enabled is false",
        ),
        (TWO | {"demo": {"enabled": True}}, "demo.enabled supports only one learner"),
        (TWO | {"envservers": {"peers": {"env": "Catch"}}}, '"demo-peers", which is taken'),
        ({"learner": {"replicas": 0}}, "replicas"),
        ({"learner": {"replicas": 1.5}}, "replicas"),
    ],
)
def test_what_does_not_go_together_should_be_refused(values: dict[str, Any], reason: str) -> None:
    assert reason in render_error(values)


def test_another_trainer_should_have_all_gpus_of_its_pod() -> None:
    manifests = render({"learner": {"gpu": {"count": 4}, "command": ["mine"]}})
    learner = container(manifests.get("StatefulSet")["spec"]["template"])
    assert learner["command"] == ["mine"]
    assert [port["name"] for port in learner["ports"]] == ["grpc", "http"]


def test_the_notes_should_name_all_learners() -> None:
    assert "2 learners" in notes(TWO)
    assert "learners" not in notes()
