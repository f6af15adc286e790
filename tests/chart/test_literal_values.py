"""The user's values reach a process unchanged: Kubernetes expands nothing, and Helm keeps their types."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver.config import EnvServerConfig, parse
from tests.chart.chart import Object, container, environment, render, render_error

TRICKY: dict[str, Any] = {
    "dollars": "5$$ $(HOME) $(KUBEBEAST_ADDRESS) $HOME ${HOME} $",
    "texts": ["1e3", "yes", "0x10", "1_000", "2024-01-01", "null", "007", "~", ""],
    "quotes": 'it\'s "quoted" \\ and\n\tbroken',
    "unicode": "prüfen ✓ 🎮",
    "markup": "<b>&amp;</b> {{ .Values }}",
    "large": 12345678901,
    "huge": 1e21,
    "small": 1e-7,
    "fraction": 0.1,
    "nothing": None,
    "empty": {"map": {}, "list": []},
    "flag": False,
}


def expanded(text: str, variables: Mapping[str, Any]) -> str:
    """Expands variables as the kubelet does in variables and arguments.

    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    return re.sub(
        r"\$\$|\$\(([^)]*)\)", lambda match: "$" if match[1] is None else str(variables.get(match[1], match[0])), text
    )


def env_server(values: Mapping[str, Any]) -> EnvServerConfig:
    """Returns the settings that the env-server reads in its pod."""
    template = render(values).get("Deployment", "demo-a")["spec"]["template"]
    variables = {name: value for name, value in environment(template).items() if isinstance(value, str)}
    found = {name: expanded(value, {"HOME": "/root", **variables}) for name, value in variables.items()}
    return parse([], {**found, "KUBEBEAST_ENV_SERVER_ID": "x"})


def group(defaults: dict[str, Any] | None = None, **entry: Any) -> dict[str, Any]:
    return {"envservers": {"a": {"env": "x", **entry}}, "envserverDefaults": defaults or {}}


def test_arguments_of_an_environment_should_arrive_as_they_are() -> None:
    kwargs = env_server(group(kwargs=TRICKY)).env_kwargs

    assert kwargs == TRICKY
    assert {name: type(value) for name, value in kwargs.items()} == {
        name: int if name == "huge" and isinstance(kwargs[name], int) else type(value) for name, value in TRICKY.items()
    }


def test_arguments_as_text_should_keep_what_yaml_and_helm_know_no_more() -> None:
    text = '{"gravity": 10.0, "on": "yes", "exact": 9007199254740993.0, "none": null}'
    kwargs = env_server(group({"kwargs": {"gravity": 3}}, kwargs=text)).env_kwargs

    assert kwargs == {"gravity": 10.0, "on": "yes", "exact": 9007199254740993.0, "none": None}
    assert isinstance(kwargs["gravity"], float)


@pytest.mark.parametrize("text", ["gravity: 10.0", "[1]", "{gravity}", '{"a": 1'])
def test_a_text_that_is_no_json_object_should_be_refused(text: str) -> None:
    assert "kwargs" in render_error(group(kwargs=text))


def test_nothing_should_win_over_a_default() -> None:
    defaults = {"kwargs": {"render_mode": "rgb_array", "size": 3, "deep": {"a": 1, "b": 2}}}

    kwargs = env_server(group(defaults, kwargs={"render_mode": None, "deep": {"a": None}})).env_kwargs

    assert kwargs == {"render_mode": None, "size": 3, "deep": {"a": None, "b": 2}}


def test_wrappers_and_their_arguments_should_arrive_as_they_are() -> None:
    wrappers = env_server(group(wrappers=["a:B", {"c:D": TRICKY}])).wrappers

    assert wrappers == (Wrapper("a:B"), Wrapper("c:D", TRICKY))


def test_wrappers_as_text_should_keep_what_helm_knows_no_more() -> None:
    text = '["a:B", {"c:D": {"scale": 10.0, "exact": 9007199254740993.0}}]'
    wrappers = env_server(group({"wrappers": ["e:F"]}, wrappers=text)).wrappers

    assert wrappers == (Wrapper("a:B"), Wrapper("c:D", {"scale": 10.0, "exact": 9007199254740993.0}))
    assert isinstance(wrappers[1].kwargs["scale"], float)


@pytest.mark.parametrize("text", ["a:B", "{}", "[a:B]", '["a:B"'])
def test_a_text_that_is_no_json_array_should_be_refused(text: str) -> None:
    assert "wrappers" in render_error(group(wrappers=text))


@pytest.mark.parametrize("env", ["$(HOME)", "a$$b", "x:${Y}"])
def test_other_texts_of_a_group_should_arrive_as_they_are(env: str) -> None:
    assert env_server(group(env=env)).env == env


def test_a_run_should_be_called_by_env_servers_and_evaluator_as_by_the_learner() -> None:
    xpid = "pong $$ $(HOME)"
    values = {
        "learner": {"xpid": xpid},
        "evaluator": {"enabled": True, "image": {"repository": "e"}},
        "envservers": {"a": {"env": "x"}},
    }
    manifests = render(values)
    arguments = container(manifests.get("Deployment", "demo-evaluator")["spec"]["template"])["args"]
    settings = yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
    variables = environment(manifests.get("Deployment", "demo-a")["spec"]["template"])

    assert f"--xpid={xpid}" in [expanded(argument, {"HOME": "/root"}) for argument in arguments]
    assert settings["xpid"] == xpid
    assert expanded(variables["KUBEBEAST_RUN"], {"HOME": "/root"}) == xpid


def test_settings_of_the_evaluator_should_arrive_as_they_are() -> None:
    config = {"env": "$(HOME)", "env_kwargs": '{"cost": "5$$"}', "episodes": 20}
    values = {"evaluator": {"enabled": True, "image": {"repository": "e"}, "config": config}}
    variables = environment(render(values).get("Deployment", "demo-evaluator")["spec"]["template"])
    found = {name: expanded(value, {"HOME": "/root"}) for name, value in variables.items()}

    assert found["KUBEBEAST_ENV"] == "$(HOME)" and json.loads(found["KUBEBEAST_ENV_KWARGS"]) == {"cost": "5$$"}
    assert found["KUBEBEAST_EPISODES"] == "20"


def test_settings_of_the_learner_should_arrive_as_they_are() -> None:
    config = {"total_steps": 12345678901, "env": "$(HOME)$$", "learning_rate": 1e-7}
    text = render({"learner": {"config": config}}).get("ConfigMap", "demo-learner")["data"]["learner.yaml"]
    settings = yaml.load(text, yaml.BaseLoader)

    assert (settings["env"], settings["total_steps"]) == ("$(HOME)$$", "12345678901")
    assert float(settings["learning_rate"]) == 1e-7


def learner(**values: Any) -> Object:
    return container(render({"learner": values}).get("StatefulSet")["spec"]["template"], "learner")


def test_flags_of_the_learner_should_be_literal_and_those_of_another_command_a_containers() -> None:
    flags = ["--env=$(HOME)", "--xyz=5$$"]

    own, other = learner(extraArgs=flags)["args"], learner(extraArgs=flags, command=["train"])["args"]
    assert [expanded(flag, {"HOME": "/root"}) for flag in own[-2:]] == flags
    assert other == flags


def test_metadata_of_a_keda_trigger_should_keep_its_numbers() -> None:
    metadata = {"big": 12345678901, "flag": True, "text": "1e3"}
    keda: dict[str, Any] = {"enabled": True, "prometheusAddress": "x", "metadata": metadata}
    (trigger,) = render(group({"autoscaling": {"keda": keda}})).get("ScaledObject")["spec"]["triggers"]

    assert {name: trigger["metadata"][name] for name in metadata} == {
        "big": "12345678901",
        "flag": "true",
        "text": "1e3",
    }


ADDRESS = {"name": "KUBEBEAST_HTTP_ADDRESS", "value": "0.0.0.0:9091"}


def test_a_variable_of_the_users_should_replace_that_of_the_chart() -> None:
    pods = [render(group({"extraEnv": [ADDRESS]})).get(kind)["spec"]["template"] for kind in ("Deployment",)]
    evaluator = {"enabled": True, "image": {"repository": "e"}, "config": {"episodes": 5}}
    evaluator |= {"extraEnv": [{"name": "KUBEBEAST_EPISODES", "value": "7"}]}
    pods.append(render({"evaluator": evaluator}).get("Deployment", "demo-evaluator")["spec"]["template"])
    several = {"replicas": 2, "extraEnv": [{"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "0"}]}
    pods.append(render({"learner": several}).get("StatefulSet", "demo-learner")["spec"]["template"])

    for pod in pods:
        names = [item["name"] for item in container(pod)["env"]]
        assert len(names) == len(set(names))
    assert environment(pods[0])["KUBEBEAST_HTTP_ADDRESS"] == "0.0.0.0:9091"
    assert environment(pods[1])["KUBEBEAST_EPISODES"] == "7"
    assert environment(pods[2])["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "0"


def test_the_last_of_several_variables_should_count_as_in_kubernetes() -> None:
    repeated = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"}]
    pod = render(group({"extraEnv": repeated})).get("Deployment")["spec"]["template"]

    assert container(pod)["env"][-2:] == repeated[1:]


def test_volumes_of_the_users_should_replace_those_of_the_chart() -> None:
    volume = {"name": "tmp", "emptyDir": {"sizeLimit": "9Gi"}}
    mount = {"name": "scratch", "mountPath": "/tmp"}
    added = {"extraVolumes": [volume, {"name": "scratch", "emptyDir": {}}], "extraVolumeMounts": [mount]}
    manifests = render({"learner": added, "envserverDefaults": added})

    for pod in manifests.pod_templates().values():
        names = [item["name"] for item in pod["spec"]["volumes"]]
        mounts = container(pod)["volumeMounts"]
        assert len(names) == len(set(names)) and volume in pod["spec"]["volumes"]
        assert [item for item in mounts if item["mountPath"] == "/tmp"] == [mount]


@pytest.mark.parametrize("value", [1, True, 0.5])
@pytest.mark.parametrize("place", ["learner", "evaluator", "envserverDefaults"])
def test_a_number_among_variables_should_be_refused_before_anything_is_made(place: str, value: object) -> None:
    error = render_error({place: {"extraEnv": [{"name": "OMP_NUM_THREADS", "value": value}]}})

    assert "/extraEnv/0/value" in error


def test_a_number_among_variables_of_the_users_containers_should_be_refused() -> None:
    game = {"name": "game", "image": "game:1", "env": [{"name": "PORT", "value": 80}]}

    assert "extraContainers" in render_error({"envserverDefaults": {"extraContainers": [game]}})
