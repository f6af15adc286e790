"""The schema of the values refuses mistakes by the name of the key before anything is installed."""

import dataclasses
import json
import re
from typing import Any

import pytest
import yaml

from generator.config_schema import with_generated_parts
from kubebeast_common.cli.settings import setting_types
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_learner.config import LearnerConfig
from tests.chart.chart import CHART, container, render, render_error

ENTRY = {"env": "x"}
EXEC = {"command": ["true"]}


def group(**entry: Any) -> dict[str, Any]:
    return {"envservers": {"a": {**ENTRY, **entry}}}


def schema() -> dict[str, Any]:
    return dict(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))


def test_entries_of_envservers_should_have_the_values_of_their_defaults() -> None:
    text, values = ((CHART / name).read_text(encoding="utf-8") for name in ("values.schema.json", "values.yaml"))
    changed = schema()
    for name, other in (("envserver", "envserverDefaults"), ("namedEnvserver", "envserver")):
        properties = changed["$defs"][name]["properties"]
        del properties["tmp"]
        properties["removed"] = {"$ref": f"#/$defs/{other}/properties/removed"}

    assert with_generated_parts(json.dumps(changed), yaml.safe_load(values)) == text


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"lerner": {}}, "lerner"),
        ({"learner": {"config": {"unrol_length": 20}}}, "unrol_length"),
        ({"learner": {"config": {"batch_size": "8"}}}, "learner.config.batch_size"),
        ({"learner": {"config": {"batch_size": 8.5}}}, "learner.config.batch_size"),
        ({"learner": {"config": {"compile": True}}}, "learner.config.compile"),
        ({"learner": {"config": {"hidden_sizes": 64}}}, "learner.config.hidden_sizes"),
        ({"learner": {"config": {"clip_rho_threshold": "nine"}}}, "learner.config.clip_rho_threshold"),
        ({"learner": {"recipe": "attari"}}, "learner.recipe"),
        ({"learner": {"image": {"tag": "latest"}}}, "learner.image.tag"),
        ({"learner": {"image": {"tag": "v1 "}}}, "learner.image.tag"),
        ({"learner": {"image": {"repository": "kubebeast/learner:v1"}}}, "learner.image.repository"),
        (group(image={"repository": "kubebeast/EnvServer"}), "image.repository"),
        ({"image": {"registry": "https://registry.example.com"}}, "image.registry"),
        ({"learner": {"tmp": {"sizeLimit": -1}}}, "learner.tmp.sizeLimit"),
        ({"learner": {"enabled": False, "address": "learner.example.com:70000"}}, "learner.address"),
        ({"learner": {"xpid": "a/b"}}, "learner.xpid"),
        ({"learner": {"xpid": "a" * 254}}, "learner.xpid"),
        (group(seed=2**31), "envservers.a.seed"),
        ({"learner": {"persistence": {"size": "20GB"}}}, "learner.persistence.size"),
        ({"learner": {"persistence": {"retention": {"whenDeleted": "Keep"}}}}, "whenDeleted"),
        ({"learner": {"externalService": {"type": "Loadbalancer"}}}, "learner.externalService.type"),
        ({"learner": {"address": "learner.example.com"}}, "learner.address"),
        ({"learner": {"gpu": {"count": -1}}}, "learner.gpu.count"),
        ({"learner": {"workload": "deployment"}}, "learner.workload"),
        ({"learner": {"queueName": "GPUs of all"}}, "learner.queueName"),
        ({"learner": {"job": {"backoffLimit": -1}}}, "learner.job.backoffLimit"),
        ({"learner": {"podLabels": {"year": 2030}}}, "learner.podLabels.year"),
        ({"envserverDefaults": {"config": {"env_timeout": 3}}}, "env_timeout"),
        ({"envserverDefaults": {"preset": "atari"}}, "envserverDefaults.preset"),
        (group(replica=2), "replica"),
        (group(replicas=-1), "envservers.a.replicas"),
        (group(config={"log_level": "loud"}), "envservers.a.config.log_level"),
        (group(serviceAccount={"create": True}), "create"),
        ({"envservers": {"Pong_v4": ENTRY}}, "Pong_v4"),
        ({"envservers": {"learner": ENTRY}}, "learner"),
        ({"envservers": [{"name": "Pong_v4", **ENTRY}]}, "envservers.0.name"),
        ({"envservers": [{"name": "a"}]}, "env"),
        ({"envservers": [ENTRY]}, "name"),
        ({"monitoring": {"serviceMonitor": {"interval": "15 s"}}}, "monitoring.serviceMonitor.interval"),
        ({"token": {"enabled": True, "value": "two words"}}, "token.value"),
        ({"learner": {"terminationGracePeriodSeconds": None}}, "terminationGracePeriodSeconds"),
        ({"learner": {"persistence": {"enabled": None}}}, "enabled"),
        ({"learner": {"service": {"port": None}}}, "port"),
        ({"learner": {"gpu": None}}, "gpu"),
        ({"envserverDefaults": {"replicas": None}}, "replicas"),
        ({"envserverDefaults": {"numStreams": None}}, "numStreams"),
        ({"image": None}, "image"),
    ],
)
def test_a_mistake_should_be_refused_by_its_key(values: dict[str, Any], key: str) -> None:
    error = render_error(values)

    assert "values don't meet the specifications of the schema" in error
    assert key in error.replace("/", ".")  # Helm 4 writes /learner/xpid, Helm 3 learner.xpid


def empty_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Returns null in the place of every value that is empty by default, unless Kubernetes gets it unchanged."""
    return {
        key: empty_defaults(value) if value and isinstance(value, dict) else None
        for key, value in values.items()
        if (not value or isinstance(value, dict)) and key not in ("limits", "securityContext")
    }


def test_a_key_with_nothing_behind_it_should_be_as_empty_as_its_default() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    nulls = empty_defaults(defaults)

    assert {"nodeSelector", "tolerations", "affinity"} <= nulls["learner"].keys()
    assert render(nulls) == render()


def test_an_image_may_be_named_by_its_digest_in_a_registry_of_a_port() -> None:
    digest = f"0.1.0@sha256:{'0123456789abcdef' * 4}"
    for registry, repository in (("", "localhost:5000/team_a/learner"), ("mirror.example.com:443/cache/", "a/learner")):
        image = {"repository": repository, "tag": digest}
        images = {"learner": {"image": image}, "envserverDefaults": {"image": image}, "image": {"registry": registry}}
        for pod in render({"global": {}} | images).pod_templates().values():
            assert pod["spec"]["containers"][0]["image"] == f"{registry}{repository}:{digest}"


@pytest.mark.parametrize("value", [None, "none", 2, 1.5])
def test_a_threshold_should_be_a_number_or_none(value: object) -> None:
    assert render({"learner": {"config": {"clip_rho_threshold": value}}}).has("StatefulSet")


@pytest.mark.parametrize(
    "name", ["address", "http_address", "savedir", "xpid", "linger", "stop_status", "token_file", "tls_cert"]
)
def test_a_setting_that_the_chart_owns_should_be_refused(name: str) -> None:
    error = render_error({"learner": {"config": {name: "x"}}})

    assert re.search(rf"\b{name}\b.* not allowed", error)


def test_every_setting_should_be_in_the_schema_or_given_by_the_chart() -> None:
    definitions = schema()["$defs"]
    owned = setting_types(LearnerConfig).keys() - definitions["learnerConfig"]["properties"].keys()
    tls = {"enabled": True, "mutual": True, "existingSecret": "a", "client": {"existingSecret": "b"}}
    job = render({"tls": tls, "learner": {"workload": "job", "nodeNotice": "aws"}})
    settings = yaml.safe_load(job.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    flags = container(render().get("StatefulSet")["spec"]["template"])["args"]

    assert owned - settings.keys() == {"token_file", "savedir"}
    assert [flag for flag in flags if flag.startswith("--savedir=")] == ["--savedir=/runs"]
    known = {field.name for field in dataclasses.fields(EnvServerConfig)}
    assert definitions["envserverConfig"]["properties"].keys() < known


def test_an_entry_should_take_every_key_of_the_defaults() -> None:
    definitions = schema()["$defs"]
    defaults, entry = (definitions[name]["properties"].keys() for name in ("envserverDefaults", "envserver"))

    assert entry - defaults == {"env", "fullnameOverride"}
    assert defaults <= entry
    assert definitions["namedEnvserver"]["properties"].keys() == entry | {"name"}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}}, "podDisruptionBudget"),
        ({"podDisruptionBudget": {"minAvailable": "1 pod"}}, "podDisruptionBudget.minAvailable"),
        ({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}, "strategy.rollingUpdate"),
        ({"strategy": {"type": "OnDelete"}}, "strategy.type"),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}, "strategy.rollingUpdate"),
        ({"livenessProbe": {"exec": EXEC, "httpGet": {"path": "/"}}}, "livenessProbe.httpGet"),
        ({"startupProbe": {"tcpSocket": {"port": 1}, "grpc": {"port": 1}}}, "startupProbe.tcpSocket"),
    ],
)
def test_what_kubernetes_takes_only_one_of_should_be_refused_together(values: dict[str, Any], key: str) -> None:
    assert key in render_error(group(**values)).replace("/", ".")
    assert key in render_error({"envserverDefaults": values}).replace("/", ".")


@pytest.mark.parametrize(
    "of_load_balancers", [{"loadBalancerClass": "a/b"}, {"loadBalancerSourceRanges": ["10.0.0.0/8"]}]
)
def test_what_only_a_load_balancer_has_should_be_refused_for_a_node_port(of_load_balancers: dict[str, Any]) -> None:
    service = {"type": "NodePort", **of_load_balancers}

    assert next(iter(of_load_balancers)) in render_error({"learner": {"externalService": service}})


def test_a_value_that_nothing_reads_should_be_refused() -> None:
    assert "cooldownPeriod" in render_error({"envserverDefaults": {"autoscaling": {"keda": {"cooldownPeriod": 1}}}})


def test_no_object_of_the_schema_should_be_open_by_accident() -> None:
    passed_on = {"passthrough", "objects", "resources"}
    conditions = {"if", "then", "allOf"}  # of an object that is closed itself
    closed = {name: item for name, item in schema()["$defs"].items() if name not in passed_on}

    def open_objects(node: object, path: str) -> list[str]:
        if not isinstance(node, dict):
            return []
        here = [path] if "properties" in node and "additionalProperties" not in node else []
        return here + [
            found
            for key, item in node.items()
            if key not in conditions
            for found in open_objects(item, f"{path}/{key}")
        ]

    assert open_objects({**schema(), "$defs": closed}, "") == []


@pytest.mark.parametrize(
    "values", [{"image": None}, {"learner": {"gpu": None}}, {"envserverDefaults": {"replicas": None}}]
)
def test_a_missing_value_should_be_refused_with_the_likely_reason(values: dict[str, Any]) -> None:
    """As after `helm upgrade --reuse-values`, which keeps the defaults of the previous chart."""
    assert "--reset-then-reuse-values" in render_error(values)
    assert "--reset-then-reuse-values" not in render_error({"lerner": {}})
