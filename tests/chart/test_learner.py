"""The learner has the right StatefulSet, settings, volume and Services."""

from typing import Any

import yaml

from kubebeast_common.cli.command import find_commands
from kubebeast_learner.config.sources import layer_flags
from tests.chart.chart import CHART, Object, container, render


def stateful_set(values: dict[str, Any] | None = None, **options: Any) -> Object:
    return render(values, **options).get("StatefulSet")


def pod(values: dict[str, Any] | None = None) -> Object:
    template: Object = stateful_set(values)["spec"]["template"]
    return template


def settings_text(config: dict[str, Any]) -> str:
    return str(render({"learner": {"config": config}}).get("ConfigMap", "demo-learner")["data"]["learner.yaml"])


def volume(template: Object, name: str) -> Object:
    (found,) = (item for item in template["spec"]["volumes"] if item["name"] == name)
    return {key: value for key, value in found.items() if key != "name"}


def test_there_should_be_one_learner() -> None:
    assert stateful_set()["spec"]["replicas"] == 1


def test_settings_should_arrive_as_they_were_written() -> None:
    config = {
        "total_steps": 50_000_000,
        "learning_rate": 1e-5,
        "use_lstm": True,
        "disable_checkpoint": False,
        "hidden_sizes": [128, 64],
        "clip_rho_threshold": None,
        "compile": "on",
    }

    settings = yaml.load(settings_text(config), yaml.BaseLoader)

    assert settings["total_steps"] == "50000000"
    assert float(settings["learning_rate"]) == 1e-5
    assert (settings["use_lstm"], settings["disable_checkpoint"]) == ("true", "false")
    assert settings["hidden_sizes"] == ["128", "64"]
    assert settings["clip_rho_threshold"] == "null"
    assert settings["compile"] == "on"


def test_the_learner_should_accept_its_settings_file(tmp_path: Any) -> None:
    text = settings_text({"total_steps": 50_000_000, "use_lstm": True, "hidden_sizes": [128, 64], "compile": "on"})
    (tmp_path / "learner.yaml").write_text(text)

    flags = layer_flags(find_commands()["learner"].config_type, [f"--config={tmp_path / 'learner.yaml'}"], {}).flags

    assert {"--total-steps=50000000", "--use-lstm", "--compile=on", "--linger", "--xpid=demo"} <= set(flags)


def test_the_run_should_keep_its_name_over_restarts() -> None:
    assert yaml.safe_load(settings_text({}))["xpid"] == "demo"
    named = render({"learner": {"xpid": "first-try"}}).get("ConfigMap", "demo-learner")

    assert yaml.safe_load(named["data"]["learner.yaml"])["xpid"] == "first-try"


def test_a_run_should_take_its_shapes_from_the_environment_of_its_groups() -> None:
    def env(**envservers: dict[str, Any]) -> str | None:
        manifests = render({"envservers": envservers})
        settings: dict[str, str] = yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"])
        return settings.get("env")

    assert env() == "PongNoFrameskip-v4"
    assert env(a={"env": "x"}, b={"env": "x", "kwargs": {"size": 5}}) == "x"
    assert env(a={"env": "x"}, b={"env": "y"}) is None


def test_the_learner_should_roll_when_its_configuration_changes() -> None:
    def checksum(values: dict[str, Any]) -> str:
        return str(pod(values)["metadata"]["annotations"]["checksum/config"])

    before = checksum({})

    assert checksum({"learner": {"config": {"batch_size": 16}}}) != before
    assert checksum({"learner": {"resources": {"requests": {"cpu": "3"}}}}) == before


def test_what_is_immutable_should_not_change_with_labels_or_a_version() -> None:
    def immutable(values: dict[str, Any]) -> list[Object]:
        spec = stateful_set(values)["spec"]
        return [spec["selector"], *spec["volumeClaimTemplates"]]

    assert immutable({"commonLabels": {"team": "games"}, "learner": {"image": {"tag": "0.2.0"}}}) == immutable({})
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["version"] not in str(immutable({}))


def test_the_run_should_be_in_a_claim_that_survives() -> None:
    manifest = stateful_set({"learner": {"persistence": {"size": "50Gi", "storageClassName": "fast"}}})
    (claim,) = manifest["spec"]["volumeClaimTemplates"]

    assert claim["metadata"]["name"] == "runs"
    assert claim["spec"]["resources"] == {"requests": {"storage": "50Gi"}}
    assert claim["spec"]["storageClassName"] == "fast"
    assert manifest["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_the_default_storage_class_should_be_left_to_the_cluster() -> None:
    def claim(name: str) -> Object:
        spec = stateful_set({"learner": {"persistence": {"storageClassName": name}}})["spec"]
        return dict(spec["volumeClaimTemplates"][0]["spec"])

    assert "storageClassName" not in claim("")
    assert claim("-")["storageClassName"] == ""


def test_an_old_cluster_should_get_no_retention_policy() -> None:
    assert "persistentVolumeClaimRetentionPolicy" not in stateful_set(kube_version="1.26.0")["spec"]


def test_an_existing_claim_should_be_used_and_none_made() -> None:
    manifest = stateful_set({"learner": {"persistence": {"existingClaim": "runs-of-last-week"}}})

    assert "volumeClaimTemplates" not in manifest["spec"]
    assert volume(manifest["spec"]["template"], "runs") == {"persistentVolumeClaim": {"claimName": "runs-of-last-week"}}


def test_without_persistence_the_run_should_be_in_the_pod() -> None:
    manifest = stateful_set({"learner": {"persistence": {"enabled": False}}})

    assert "volumeClaimTemplates" not in manifest["spec"]
    assert volume(manifest["spec"]["template"], "runs") == {"emptyDir": {}}


def test_shared_memory_should_have_the_wanted_size() -> None:
    template = pod({"learner": {"sharedMemory": {"sizeLimit": "4Gi"}}})

    assert volume(template, "shm") == {"emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}


def test_what_users_add_should_be_there() -> None:
    added: dict[str, Any] = {
        "extraArgs": ["--profile"],
        "extraEnv": [{"name": "OMP_NUM_THREADS", "value": "2"}],
        "extraEnvFrom": [{"secretRef": {"name": "wandb"}}],
        "extraVolumes": [{"name": "code", "configMap": {"name": "model"}}],
        "extraVolumeMounts": [{"name": "code", "mountPath": "/code"}],
        "initContainers": [{"name": "fetch", "image": "fetch:1"}],
        "extraContainers": [{"name": "ship-logs", "image": "ship:1"}],
        "labels": {"kueue.x-k8s.io/queue-name": "gpu"},
        "podLabels": {"team": "games"},
        "podAnnotations": {"note": "long run"},
    }
    manifest = stateful_set({"learner": added})
    template = manifest["spec"]["template"]
    learner = container(template, "learner")

    assert learner["args"][-1] == "--profile"
    assert learner["env"] == added["extraEnv"]
    assert learner["envFrom"] == added["extraEnvFrom"]
    assert volume(template, "code") == {"configMap": {"name": "model"}}
    assert added["extraVolumeMounts"][0] in learner["volumeMounts"]
    assert template["spec"]["initContainers"] == added["initContainers"]
    assert added["extraContainers"][0] in template["spec"]["containers"]
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
    assert template["metadata"]["labels"]["team"] == "games"
    assert template["metadata"]["annotations"]["note"] == "long run"


def test_another_command_should_replace_the_learners_and_be_told_where_it_serves() -> None:
    command = ["python", "/code/train.py", "--address=$(KUBEBEAST_ADDRESS)"]
    added = {"command": command, "extraArgs": ["--seed=2"], "extraEnv": [{"name": "A", "value": "b"}]}
    learner = container(pod({"learner": added, "token": {"enabled": True, "value": "a"}}), "learner")

    assert (learner["command"], learner["args"]) == (command, ["--seed=2"])
    assert {variable["name"]: variable["value"] for variable in learner["env"]} == {
        "KUBEBEAST_ADDRESS": "[::]:4431",
        "KUBEBEAST_HTTP_ADDRESS": "[::]:9090",
        "KUBEBEAST_TOKEN_FILE": "/etc/kubebeast/access/token",
        "A": "b",
    }
    assert learner["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


def test_another_command_should_find_the_certificates() -> None:
    tls = {"enabled": True, "mutual": True, "existingSecret": "mine", "client": {"existingSecret": "theirs"}}
    learner = container(pod({"learner": {"command": ["train"]}, "tls": tls}), "learner")

    assert "args" not in learner
    assert {variable["name"]: variable["value"] for variable in learner["env"]} == {
        "KUBEBEAST_ADDRESS": "[::]:4431",
        "KUBEBEAST_HTTP_ADDRESS": "[::]:9090",
        "KUBEBEAST_TLS_CERT": "/etc/kubebeast/access/tls.crt",
        "KUBEBEAST_TLS_KEY": "/etc/kubebeast/access/tls.key",
        "KUBEBEAST_TLS_CA": "/etc/kubebeast/access/ca.crt",
    }


def test_the_learner_itself_should_get_no_command_and_no_variables() -> None:
    learner = container(pod(), "learner")

    assert learner["args"][0] == "learner"
    assert "command" not in learner and "env" not in learner


def test_settings_should_reach_the_pod_at_once_or_when_it_is_deleted() -> None:
    assert stateful_set()["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    manifest = stateful_set({"learner": {"updateStrategy": {"type": "OnDelete"}}})
    assert manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}
