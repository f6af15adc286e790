"""The schema of the values: mistakes are refused by the name of the key before anything is installed."""

import dataclasses
import json
import re
from typing import Any

import pytest

from kubebeast_envserver.config import EnvServerConfig
from kubebeast_learner.config import LearnerConfig
from kubebeast_learner.config_sources import setting_types
from tests.chart.chart import CHART, render, render_error

ENTRY = {"name": "a", "env": "x"}


def schema() -> dict[str, Any]:
    return dict(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))


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
        ({"learner": {"xpid": "a/b"}}, "learner.xpid"),
        ({"learner": {"persistence": {"size": "20GB"}}}, "learner.persistence.size"),
        ({"learner": {"persistence": {"retention": {"whenDeleted": "Keep"}}}}, "whenDeleted"),
        ({"learner": {"service": {"type": "Loadbalancer"}}}, "learner.service.type"),
        ({"learner": {"podLabels": {"year": 2030}}}, "learner.podLabels.year"),
        ({"envserverDefaults": {"config": {"env_timeout": 3}}}, "env_timeout"),
        ({"envserverDefaults": {"preset": "atari"}}, "envserverDefaults.preset"),
        ({"envservers": [{**ENTRY, "replica": 2}]}, "replica"),
        ({"envservers": [{**ENTRY, "replicas": -1}]}, "envservers.0.replicas"),
        ({"envservers": [{**ENTRY, "config": {"log_level": "loud"}}]}, "envservers.0.config.log_level"),
        ({"envservers": [{**ENTRY, "name": "Pong_v4"}]}, "envservers.0.name"),
        ({"envservers": [{"name": "a"}]}, "env"),
        ({"envservers": [{**ENTRY, "serviceAccount": {"create": True}}]}, "create"),
        ({"monitoring": {"serviceMonitor": {"interval": "15 s"}}}, "monitoring.serviceMonitor.interval"),
        ({"token": {"enabled": True, "value": "two words"}}, "token.value"),
    ],
)
def test_a_mistake_should_be_refused_by_its_key(values: dict[str, Any], key: str) -> None:
    error = render_error(values)

    assert "values don't meet the specifications of the schema" in error
    assert key in error.replace("/", ".")  # Helm 4 writes /learner/xpid, Helm 3 learner.xpid


@pytest.mark.parametrize("value", [None, "none", 2, 1.5])
def test_a_threshold_should_be_a_number_or_none(value: object) -> None:
    assert render({"learner": {"config": {"clip_rho_threshold": value}}}).has("StatefulSet")


@pytest.mark.parametrize("name", ["address", "http_address", "savedir", "xpid", "linger", "token_file", "tls_cert"])
def test_a_setting_that_the_chart_owns_should_be_refused(name: str) -> None:
    error = render_error({"learner": {"config": {name: "x"}}})

    assert re.search(rf"\b{name}\b.* not allowed", error)


def test_every_setting_should_be_in_the_schema_or_given_by_the_chart() -> None:
    definitions = schema()["$defs"]
    owned = setting_types(LearnerConfig).keys() - definitions["learnerConfig"]["properties"].keys()
    text = render({"tls": {"enabled": True, "mutual": True, "existingSecret": "a", "client": {"existingSecret": "b"}}})
    file = text.get("ConfigMap", "demo-learner")["data"]["learner.yaml"]

    assert {name for name in owned if f"{name}: " not in file} == {"token_file"}
    known = {field.name for field in dataclasses.fields(EnvServerConfig)}
    assert definitions["envserverConfig"]["properties"].keys() < known


def test_an_entry_should_take_every_key_of_the_defaults() -> None:
    definitions = schema()["$defs"]
    defaults, entry = (definitions[name]["properties"].keys() for name in ("envserverDefaults", "envserver"))

    assert entry - defaults == {"name", "env", "fullnameOverride"}
    assert defaults <= entry


def test_no_object_of_the_schema_should_be_open_by_accident() -> None:
    passed_on = {"passthrough", "objects", "resources"}
    closed = {name: item for name, item in schema()["$defs"].items() if name not in passed_on}

    def open_objects(node: object, path: str) -> list[str]:
        if not isinstance(node, dict):
            return []
        here = [path] if "properties" in node and "additionalProperties" not in node else []
        return here + [found for key, item in node.items() for found in open_objects(item, f"{path}/{key}")]

    assert open_objects({**schema(), "$defs": closed}, "") == []
