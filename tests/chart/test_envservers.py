"""Entries of groups merge with the defaults, and reach the env-server."""

from typing import Any

import pytest

from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver.config import parse
from tests.chart.chart import Object, container, environment, render, render_error

PONG = {"env": "PongNoFrameskip-v4"}
TWO: dict[str, Any] = {"a": {"env": "x"}, "b": {"env": "x"}}


def deployment(entry: dict[str, Any], defaults: dict[str, Any] | None = None) -> Object:
    return render({"envservers": {"envserver": {**PONG, **entry}}, "envserverDefaults": defaults or {}}).get(
        "Deployment"
    )


def test_each_entry_should_be_a_deployment() -> None:
    manifests = render({"envservers": TWO})

    assert [item["metadata"]["name"] for item in manifests.of_kind("Deployment")] == ["demo-a", "demo-b"]


def test_groups_should_not_select_each_others_pods() -> None:
    manifests = render({"envservers": TWO})
    pods = manifests.pod_templates()

    for item in manifests.of_kind("Deployment"):
        selector = item["spec"]["selector"]["matchLabels"].items()
        selected = [name for name, pod in pods.items() if selector <= pod["metadata"]["labels"].items()]
        assert selected == [f"Deployment/{item['metadata']['name']}"]


def test_an_entry_should_win_over_the_defaults() -> None:
    item = deployment(
        {"replicas": 0, "resources": {"requests": {"cpu": "4"}}, "podDisruptionBudget": {"enabled": False}},
        {"replicas": 5, "podDisruptionBudget": {"enabled": True}},
    )

    assert item["spec"]["replicas"] == 0
    assert container(item["spec"]["template"])["resources"]["requests"] == {"cpu": "4", "memory": "1Gi"}
    assert not render().has("PodDisruptionBudget")


def test_a_deployment_should_say_which_number_of_replicas_it_was_made_with() -> None:
    item = deployment({"replicas": 3})

    assert item["spec"]["replicas"] == 3
    assert item["metadata"]["annotations"]["kubebeast/replicas"] == "3"


def test_an_entrys_false_should_win_over_a_true_default() -> None:
    budgets = render(
        {
            "envserverDefaults": {"podDisruptionBudget": {"enabled": True}},
            "envservers": {"a": {"env": "x", "podDisruptionBudget": {"enabled": False}}, "b": {"env": "x"}},
        }
    ).of_kind("PodDisruptionBudget")

    assert [item["metadata"]["name"] for item in budgets] == ["demo-b"]
    assert budgets[0]["spec"]["maxUnavailable"] == "25%"
    assert budgets[0]["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_entries_should_not_change_each_other() -> None:
    manifests = render({"envservers": {"a": {"env": "x", "config": {"log_level": "debug"}}, "b": {"env": "x"}}})

    assert "KUBEBEAST_LOG_LEVEL" not in environment(manifests.get("Deployment", "demo-b")["spec"]["template"])


def test_the_env_server_should_understand_its_variables() -> None:
    entry = {
        "kwargs": {"frame_skip": 4, "sticky": 0.25},
        "wrappers": ["a:B", {"c:D": {"x": 1}}],
        "timeLimit": 500,
        "seed": 0,
        "numStreams": 3,
        "envsPerStream": 8,
        "preset": "atari-v5",
        "config": {"env_timeout_s": 300, "log_level": "debug"},
    }
    variables = environment(deployment(entry)["spec"]["template"])
    variables["KUBEBEAST_ENV_SERVER_ID"] = "demo-envserver-x"

    config = parse([], variables)

    assert config.address == "demo-learner.training.svc:4431"
    assert config.http_address == "[::]:9091"
    assert (config.env, config.preset, config.env_kwargs) == ("PongNoFrameskip-v4", "atari-v5", entry["kwargs"])
    assert (config.wrappers, config.time_limit) == ((Wrapper("a:B"), Wrapper("c:D", {"x": 1})), 500)
    assert (config.seed, config.num_streams, config.envs_per_stream) == (0, 3, 8)
    assert (config.env_timeout_s, config.log_level) == (300, "debug")


def test_pods_should_be_told_apart_by_their_names() -> None:
    variables = environment(deployment({})["spec"]["template"])

    assert variables["KUBEBEAST_ENV_SERVER_ID"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert "KUBEBEAST_SEED" not in variables


def test_env_servers_should_dial_the_port_of_the_service() -> None:
    manifests = render({"learner": {"service": {"port": 5000}}})
    variables = environment(manifests.get("Deployment")["spec"]["template"])

    assert variables["KUBEBEAST_ADDRESS"] == "demo-learner.training.svc:5000"
    assert manifests.get("Service", "demo-learner")["spec"]["ports"][0]["port"] == 5000


@pytest.mark.parametrize("scaler", [{"hpa": {"enabled": True}}, {"keda": {"enabled": True, "prometheusAddress": "x"}}])
def test_an_autoscaler_should_own_the_replicas(scaler: dict[str, Any]) -> None:
    assert "replicas" not in deployment({"autoscaling": scaler})["spec"]
    assert deployment({})["spec"]["replicas"] == 2


def test_spread_constraints_should_count_the_groups_own_pods() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    own = {"labelSelector": {"matchLabels": {"team": "games"}}}
    item = deployment({"topologySpreadConstraints": [constraint, {**constraint, **own}]})
    found = item["spec"]["template"]["spec"]["topologySpreadConstraints"]

    assert found[0]["labelSelector"] == item["spec"]["selector"]
    assert found[1]["labelSelector"] == own["labelSelector"]


def test_groups_should_share_one_account_unless_they_name_their_own() -> None:
    manifests = render(
        {"envservers": {"a": {"env": "x"}, "b": {"env": "x", "serviceAccount": {"name": "reads-levels"}}}}
    )
    accounts = {
        name: manifests.get("Deployment", name)["spec"]["template"]["spec"]["serviceAccountName"]
        for name in ("demo-a", "demo-b")
    }

    assert accounts == {"demo-a": "demo-envserver", "demo-b": "reads-levels"}
    assert manifests.has("ServiceAccount", "demo-envserver")
    assert not manifests.has("ServiceAccount", "reads-levels")


@pytest.mark.parametrize("name", ["yes", "null"])
def test_a_name_that_yaml_takes_for_something_else_should_stay_a_name(name: str) -> None:
    item = render({"envservers": {name: {"env": "x"}}}).get("Deployment")

    assert item["metadata"]["labels"]["kubebeast/group"] == name


def test_two_groups_should_not_share_a_deployment() -> None:
    entries = TWO | {"b": {"env": "x", "fullnameOverride": "demo-a"}}

    assert 'the Deployment of the group "b" would be "demo-a", which is taken' in render_error({"envservers": entries})


def test_a_group_should_not_share_its_name_with_the_learner() -> None:
    """Their disruption budgets would be one object."""
    error = render_error({"envservers": {"a": {"env": "x", "fullnameOverride": "demo-learner"}}})

    assert 'the Deployment of the group "a" would be "demo-learner", which is taken' in error
    assert "learner" in render_error({"envservers": {"learner": {"env": "x"}}})


def test_without_a_word_there_should_be_one_group() -> None:
    (deployment,) = render().of_kind("Deployment")

    assert deployment["metadata"]["name"] == "demo-envserver"
    assert environment(deployment["spec"]["template"])["KUBEBEAST_ENV"] == "PongNoFrameskip-v4"


def test_a_group_should_say_which_environment_it_plays() -> None:
    assert "envservers.easy.env is required" in render_error({"envservers": {"easy": {"replicas": 3}}})


def test_there_may_be_no_group() -> None:
    manifests = render({"envserverDefaults": {"enabled": False}})

    assert not manifests.has("Deployment")
    assert not manifests.has("Pod")


def test_a_second_file_of_values_should_change_one_group_and_leave_the_others() -> None:
    base = {"envservers": {"a": {"env": "x", "replicas": 3}, "b": {"env": "x", "replicas": 5}, "c": {"env": "x"}}}
    overlay = {"envservers": {"b": {"numStreams": 2}, "c": {"enabled": False}}}
    a, b = render(base, overlay).of_kind("Deployment")

    assert (a["metadata"]["name"], a["spec"]["replicas"]) == ("demo-a", 3)
    assert (b["metadata"]["name"], b["spec"]["replicas"]) == ("demo-b", 5)
    assert environment(b["spec"]["template"])["KUBEBEAST_NUM_STREAMS"] == "2"


def test_a_list_of_groups_should_be_what_the_map_is() -> None:
    groups: dict[str, dict[str, Any]] = {"a": {"env": "x", "replicas": 3}, "b": {"env": "y", "kwargs": {"size": 5}}}
    listed = [{"name": name, **entry} for name, entry in groups.items()]

    assert render({"envservers": listed}) == render({"envservers": groups})
    assert not render({"envservers": []}).has("Deployment")


def test_a_name_that_a_list_repeats_should_be_refused() -> None:
    error = render_error({"envservers": [{"name": "a", **PONG}, {"name": "a", **PONG}]})

    assert 'envservers: the name "a" is used twice' in error


def test_the_test_pod_should_play_the_first_group_and_be_nobodys() -> None:
    manifests = render({"envservers": {"envserver": {**PONG, "kwargs": {"a": 1}, "seed": 3}}})
    pod = manifests.get("Pod", "demo-test-stream")
    config = parse([], environment(pod))

    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert pod["spec"]["restartPolicy"] == "Never"
    assert (config.env, config.env_kwargs, config.seed) == ("PongNoFrameskip-v4", {"a": 1}, None)
    assert (config.num_streams, config.envs_per_stream, config.max_steps, config.max_redials) == (1, 1, 20, 5)
    for item in (*manifests.of_kind("Deployment"), *manifests.of_kind("PodDisruptionBudget")):
        assert not item["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert not render({"test": {"enabled": False}}).has("Pod")


def test_what_users_add_should_be_in_the_pods() -> None:
    added: dict[str, Any] = {
        "initContainers": [{"name": "fetch", "image": "fetch:1"}],
        "extraContainers": [{"name": "game", "image": "game:1"}],
    }
    item = deployment({**added, "progressDeadlineSeconds": 3600})
    spec = item["spec"]["template"]["spec"]

    assert spec["initContainers"] == added["initContainers"]
    assert [container["name"] for container in spec["containers"]] == ["envserver", "game"]
    assert item["spec"]["progressDeadlineSeconds"] == 3600


def test_a_group_that_others_scale_should_be_made_without_a_number() -> None:
    item = deployment({"scaledByOthers": True, "replicas": 5})

    assert "replicas" not in item["spec"]
    assert item["metadata"]["annotations"]["kubebeast/scaled-by-others"] == "true"
    assert "kubebeast/scaled-by-others" not in deployment({})["metadata"]["annotations"]


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
def test_a_group_should_roll_without_room_for_further_pods(replicas: int) -> None:
    """A quarter of one to three pods is 0, which Kubernetes raises to 1 if there is no surge."""
    update = deployment({"replicas": replicas})["spec"]["strategy"]["rollingUpdate"]

    assert update == {"maxUnavailable": "25%", "maxSurge": 0}


@pytest.mark.parametrize("none", [0, "0%"])
def test_a_group_that_may_miss_no_pod_should_have_room_for_further_ones(none: object) -> None:
    update = deployment({"strategy": {"rollingUpdate": {"maxUnavailable": none}}})["spec"]["strategy"]["rollingUpdate"]

    assert update == {"maxUnavailable": none, "maxSurge": "25%"}


def test_env_servers_should_name_the_run_that_they_play_for() -> None:
    def run_of(learner: dict[str, Any]) -> object:
        pod = render({"learner": learner, "envservers": TWO}).get("Deployment", "demo-a")["spec"]["template"]
        return environment(pod).get("KUBEBEAST_RUN")

    elsewhere = {"enabled": False, "address": "learner.example.com:4431"}
    assert run_of({}) == "demo" and run_of({"xpid": "night"}) == "night"
    assert run_of(elsewhere) is None and run_of(elsewhere | {"xpid": "night"}) == "night"
    assert run_of({"command": ["train"]}) is None
