"""The evaluator is a Deployment of one pod that plays the learner's checkpoints from its volume."""

from typing import Any

import pytest

from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.parsing import StartLog, parse
from kubebeast_learner.config.sources import layer_flags
from tests.chart.chart import Object, container, environment, notes, render, render_error

IMAGE = {"repository": "kubebeast/evaluator"}
NAME = "demo-evaluator"


def values(learner: dict[str, Any] | None = None, **evaluator: Any) -> dict[str, Any]:
    return {"learner": learner or {}, "evaluator": {"enabled": True, "image": IMAGE, **evaluator}}


def pod(learner: dict[str, Any] | None = None, **evaluator: Any) -> Object:
    template: Object = render(values(learner, **evaluator)).get("Deployment", NAME)["spec"]["template"]
    return template


def claim(template: Object) -> str:
    (volume,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "runs"]
    return str(volume["persistentVolumeClaim"]["claimName"])


def test_there_should_be_none_by_default() -> None:
    assert not render().has("Deployment", NAME)
    assert "demo-evaluator" not in notes()


def test_there_should_be_one_and_never_two_at_a_time() -> None:
    spec = render(values()).get("Deployment", NAME)["spec"]

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert render(values() | {"paused": True}).get("Deployment", NAME)["spec"]["replicas"] == 0
    assert "replicas" in render_error(values(replicas=2))


@pytest.mark.parametrize("xpid", ["", "first-try"])
def test_the_process_should_follow_the_run_of_the_learner(xpid: str) -> None:
    template = pod({"xpid": xpid}, config={"episodes": 50, "mode": "sample"})
    name, *flags = container(template)["args"]
    command = find_commands()[name]

    layered = layer_flags(command.config_type, flags, environment(template))
    config = parse(StartLog(name, "text"), name, command.config_type, layered, command.has_sources)

    assert (config.follow, config.linger, str(config.savedir), config.xpid) == (True, True, "/runs", xpid or "demo")
    assert (config.episodes, config.mode) == (50, "sample")
    (port,) = container(template)["ports"]
    assert config.http_address == f"[::]:{port['containerPort']}"
    assert [container(template)[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe")] == [
        "http"
    ] * 2


def test_it_should_mount_the_claim_of_the_learner() -> None:
    manifests = render(values())
    (template,) = manifests.get("StatefulSet")["spec"]["volumeClaimTemplates"]

    assert claim(pod()) == f"{template['metadata']['name']}-{manifests.get('StatefulSet')['metadata']['name']}-0"
    assert claim(pod({"persistence": {"existingClaim": "mine"}})) == "mine"
    assert {"name": "runs", "mountPath": "/runs"} in container(pod())["volumeMounts"]


def test_it_should_write_as_the_user_of_the_learner() -> None:
    learner = {"podSecurityContext": {"runAsUser": 2000, "runAsNonRoot": True}}
    manifests = render(values(learner))
    own, other = (manifests.get(kind, name)["spec"]["template"]["spec"] for kind, name in (
        ("Deployment", NAME), ("StatefulSet", "demo-learner")
    ))  # fmt: skip

    assert own["securityContext"] == other["securityContext"]
    assert own["serviceAccountName"] == other["serviceAccountName"]


def test_a_volume_of_one_node_should_keep_it_beside_the_learner() -> None:
    taint = {"key": "nvidia.com/gpu", "operator": "Exists"}
    own = {"key": "spot", "operator": "Exists"}
    manifests = render(values({"tolerations": [taint]}, tolerations=[own]))
    spec = manifests.get("Deployment", NAME)["spec"]["template"]["spec"]
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    wanted = term["labelSelector"]["matchLabels"].items()

    assert term["topologyKey"] == "kubernetes.io/hostname"
    pods = manifests.pod_templates().items()
    assert [name for name, pod in pods if wanted <= pod["metadata"]["labels"].items()] == ["StatefulSet/demo-learner"]
    assert spec["tolerations"][:2] == [taint, own]


def test_a_volume_of_many_nodes_should_leave_it_free() -> None:
    learner = {"persistence": {"accessModes": ["ReadWriteMany"]}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    spec = pod(learner, nodeSelector={"pool": "cpu"})["spec"]

    assert "affinity" not in spec
    assert spec["nodeSelector"] == {"pool": "cpu", "kubernetes.io/os": "linux"}
    assert "gpu" not in [toleration["key"] for toleration in spec["tolerations"]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"evaluator": {"enabled": True}}, "requires evaluator.image.repository: an image with the learner"),
        (
            values({"persistence": {"enabled": False}}),
            "requires learner.persistence.enabled or learner.storage.url",
        ),
        (values({"persistence": {"accessModes": ["ReadWriteOncePod"]}}), "ReadWriteOncePod, so no second pod"),
        (values({"enabled": False, "address": "a:1"}), "requires learner.enabled: the evaluator plays"),
        (values() | {"envservers": {"evaluator": {"env": "x"}}}, 'the group "evaluator" of env-servers has the same'),
    ],
)
def test_what_it_needs_should_be_said(changes: dict[str, Any], reason: str) -> None:
    assert reason in " ".join(render_error(changes).split())


@pytest.mark.parametrize(
    ("evaluator", "key"),
    [
        ({"config": {"episode": 5}}, "episode"),
        ({"config": {"episodes": "5"}}, "evaluator.config.episodes"),
        ({"config": {"xpid": "other"}}, "xpid"),
        ({"image": {"repository": "kubebeast/evaluator:1"}}, "evaluator.image.repository"),
    ],
)
def test_a_mistake_should_be_refused_by_its_name(evaluator: dict[str, Any], key: str) -> None:
    error = render_error(values(**evaluator))

    assert all(part in error for part in key.split("."))


def test_what_users_add_should_be_there() -> None:
    mount = {"name": "code", "mountPath": "/code"}
    variable = {"name": "PYTHONPATH", "value": "/code"}
    volume = {"name": "code", "configMap": {"name": "model"}}
    template = pod(extraEnv=[variable], extraVolumes=[volume], extraVolumeMounts=[mount], podAnnotations={"note": "x"})

    assert variable in container(template)["env"]
    assert mount in container(template)["volumeMounts"]
    assert volume in template["spec"]["volumes"]
    assert template["metadata"]["annotations"] == {"note": "x"}


def test_prometheus_should_scrape_it_in_the_job_of_the_release() -> None:
    manifests = render(values() | {"monitoring": {"podMonitor": {"enabled": True}}})
    spec = manifests.get("PodMonitor", NAME)["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]

    assert spec["selector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()
    assert endpoint["port"] in [port["name"] for port in container(pod())["ports"]]
    assert spec["jobLabel"] == manifests.get("PodMonitor", "demo-envserver")["spec"]["jobLabel"]


def test_a_policy_should_leave_it_what_environments_may_reach() -> None:
    manifests = render(values() | {"networkPolicy": {"enabled": True}})
    own, other = (manifests.get("NetworkPolicy", name)["spec"] for name in (NAME, "demo-envserver"))

    assert own["podSelector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()
    assert own["egress"] == other["egress"][1:], "all but the learner"
    assert own["ingress"][0]["ports"] == [{"port": 9090, "protocol": "TCP"}]


SEVERAL = {
    "evaluator": {
        "image": IMAGE,
        "config": {"episodes": 20, "mode": "greedy"},
        "extraEnv": [{"name": "A", "value": "1"}],
    },
    "evaluators": {
        "sampling": {"config": {"mode": "sample"}},
        "sticky": {"image": {"tag": "2"}, "extraEnv": [], "resources": {"requests": {"cpu": 2}}},
        "unused": {"enabled": False},
    },
}


def evaluator_names(changes: dict[str, Any]) -> list[str]:
    names = (item["metadata"]["name"] for item in render(changes).of_kind("Deployment"))
    return [name for name in names if name.startswith(NAME)]


def test_each_of_several_should_have_a_deployment_without_the_one_that_has_no_name() -> None:
    assert evaluator_names(SEVERAL) == ["demo-evaluator-sampling", "demo-evaluator-sticky"]
    both = SEVERAL | {"evaluator": SEVERAL["evaluator"] | {"enabled": True}}
    assert evaluator_names(both) == [NAME, "demo-evaluator-sampling", "demo-evaluator-sticky"]
    assert evaluator_names({"evaluators": {"gone": None}}) == []


def test_an_entry_should_override_the_values_of_the_evaluator() -> None:
    manifests = render(SEVERAL)
    sampling, sticky = (
        manifests.get("Deployment", f"demo-evaluator-{name}")["spec"]["template"] for name in ("sampling", "sticky")
    )

    assert environment(sampling) == {"A": "1", "KUBEBEAST_EPISODES": "20", "KUBEBEAST_MODE": "sample"}
    assert environment(sticky) == {"KUBEBEAST_EPISODES": "20", "KUBEBEAST_MODE": "greedy"}
    assert container(sticky)["image"].endswith("kubebeast/evaluator:2")
    assert container(sticky)["resources"]["requests"] == {"cpu": 2, "memory": "1Gi"}
    assert "livenessProbe" in container(sampling)
    exec_probe = {"evaluators": {"a": {"image": IMAGE, "livenessProbe": {"exec": {"command": ["true"]}}}}}
    exec_probe["evaluator"] = {"livenessProbe": {"tcpSocket": {"port": 1}}}
    probe = container(render(exec_probe).get("Deployment", f"{NAME}-a")["spec"]["template"])["livenessProbe"]
    assert probe["exec"] == {"command": ["true"]} and "tcpSocket" not in probe


def test_each_process_should_have_its_name() -> None:
    template = render(SEVERAL).get("Deployment", "demo-evaluator-sampling")["spec"]["template"]
    name, *flags = container(template)["args"]
    command = find_commands()[name]
    layered = layer_flags(command.config_type, flags, environment(template))
    config = parse(StartLog(name, "text"), name, command.config_type, layered, command.has_sources)

    assert (config.name, config.mode, config.episodes, config.follow) == ("sampling", "sample", 20, True)
    assert not any(flag.startswith("--name") for flag in container(pod())["args"])


def test_no_deployment_should_select_the_pods_of_another() -> None:
    both = SEVERAL | {"evaluator": SEVERAL["evaluator"] | {"enabled": True}}
    manifests = render(both)
    pods = manifests.pod_templates().items()
    for deployment in manifests.of_kind("Deployment"):
        wanted = deployment["spec"]["selector"]["matchLabels"].items()
        selected = [name for name, template in pods if wanted <= template["metadata"]["labels"].items()]
        assert selected == [f"Deployment/{deployment['metadata']['name']}"]
    assert render(values()).get("Deployment", NAME)["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "kubebeast",
        "app.kubernetes.io/instance": "demo",
        "app.kubernetes.io/component": "evaluator",
    }, "a selector is immutable: charts from before have this one"


def test_monitors_and_policies_should_reach_those_with_a_name() -> None:
    manifests = render(SEVERAL | {"monitoring": {"podMonitor": {"enabled": True}}, "networkPolicy": {"enabled": True}})
    labels = manifests.get("Deployment", "demo-evaluator-sticky")["spec"]["template"]["metadata"]["labels"]

    monitor = manifests.get("PodMonitor", "demo-named-evaluator")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["podTargetLabels"] == ["kubebeast/group"] and labels["kubebeast/group"] == "sticky"
    policy = manifests.get("NetworkPolicy", "demo-named-evaluator")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert not manifests.has("PodMonitor", NAME) and not manifests.has("NetworkPolicy", NAME)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"evaluators": {"a": {}}}, "evaluators.a.enabled requires evaluator.image.repository"),
        ({"evaluators": {"A": {"image": IMAGE}}}, "invalid propertyName 'A'"),
        ({"evaluators": {"a": {"image": IMAGE, "config": {"name": "b"}}}}, "name"),
        ({"evaluators": {"a": {"image": IMAGE, "replicas": 2}}}, "replicas"),
        (
            {"evaluators": {"a": {"image": IMAGE}}, "envservers": {"evaluator-a": {"env": "x"}}},
            'evaluators.a.enabled: the group "evaluator-a" of env-servers has the same name',
        ),
        (
            SEVERAL | {"learner": {"config": {"best_by": "evaluation"}}},
            "there are several evaluators: set learner.config.best_evaluator to the name of one of them",
        ),
    ],
)
def test_a_mistake_in_an_entry_should_be_refused(changes: dict[str, Any], reason: str) -> None:
    assert reason in " ".join(render_error(changes).split())


def test_a_long_name_should_fit_its_deployment() -> None:
    long = render({"evaluators": {"a" * 40: {"image": IMAGE}}, "fullnameOverride": "b" * 40})
    (name,) = [name for name in long.pod_templates() if "evaluator" in name]

    assert len(name.removeprefix("Deployment/")) == 63


def test_the_notes_should_say_where_the_scores_are() -> None:
    assert "logs -f deployment/demo-evaluator-sampling\n" in notes(SEVERAL)
    assert "kubectl -n training logs -f deployment/demo-evaluator" in notes(values())
