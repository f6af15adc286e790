"""Every scenario of ci/ has valid objects, the labels, and the restricted security context."""

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import kubernetes_validate
import pytest

from tests.chart.chart import APP_VERSION, SCENARIOS, Manifests, Object, lint, render, render_error, scenario

NOT_OF_KUBERNETES = ("cert-manager.io", "jobset.x-k8s.io", "keda.sh", "monitoring.coreos.com")
REQUIRED_LABELS = {"name", "instance", "version", "managed-by", "part-of"}
every_scenario = pytest.mark.parametrize("manifests", SCENARIOS, indirect=True)


@pytest.fixture
def manifests(request: pytest.FixtureRequest) -> Manifests:
    return render(str(request.param))


@pytest.fixture(scope="module", autouse=True)
def schemas_are_read_once() -> Any:
    """kubernetes-validate would parse megabytes of definitions for each object."""
    patch = pytest.MonkeyPatch()
    read: Callable[[str, str], Any] = kubernetes_validate.utils.schema_contents
    patch.setattr(kubernetes_validate.utils, "schema_contents", functools.cache(read))
    yield
    patch.undo()


def distinct_objects(kube_version: str) -> list[Object]:
    """Returns the objects of all scenarios, apart from custom resources."""
    everything = [item for name in SCENARIOS for item in render(name, kube_version=kube_version)]
    texts = {json.dumps(item) for item in everything if not item["apiVersion"].startswith(NOT_OF_KUBERNETES)}
    return [json.loads(text) for text in sorted(texts)]


@pytest.mark.parametrize("minor", range(25, 38))
def test_every_object_should_be_valid_on_every_version(minor: int) -> None:
    """Covers every version for which kubernetes-validate has schemas."""
    # Nothing in the chart depends on the version from 1.27 on.
    objects = distinct_objects(f"1.{minor}.0" if minor < 27 else "1.37.0")

    assert len(objects) > len(SCENARIOS)
    for item in objects:
        assert kubernetes_validate.validate(item, f"1.{minor}", strict=True) == f"1.{minor}"


def test_nothing_should_depend_on_the_version_from_1_27_on() -> None:
    assert distinct_objects("1.27.0") == distinct_objects("1.37.0")


@pytest.mark.parametrize("name", SCENARIOS)
def test_helm_should_find_no_fault(name: str) -> None:
    assert "0 chart(s) failed" in lint(scenario(name))


@every_scenario
def test_names_should_be_unique_and_fit_a_label(manifests: Manifests) -> None:
    names = [(item["kind"], item["metadata"]["name"]) for item in manifests]

    assert len(set(names)) == len(names)
    assert [name for _, name in names if len(name) > 63] == []


@every_scenario
def test_every_object_should_carry_the_common_labels(manifests: Manifests) -> None:
    for item in manifests:
        labels = item["metadata"]["labels"]
        assert {f"app.kubernetes.io/{name}" for name in REQUIRED_LABELS} <= labels.keys(), item["metadata"]
        assert labels["app.kubernetes.io/name"] == "kubebeast"
        assert labels["helm.sh/chart"].startswith("kubebeast-")


def test_common_labels_and_annotations_should_be_on_everything() -> None:
    values = {**scenario("tls"), "commonLabels": {"team": "games"}, "commonAnnotations": {"note": "x"}}
    manifests = render(values)

    for item in manifests:
        assert item["metadata"]["labels"]["team"] == "games"
        assert item["metadata"]["annotations"]["note"] == "x"
    for pod in manifests.pod_templates().values():
        assert pod["metadata"]["labels"]["team"] == "games"


@every_scenario
def test_every_pod_should_meet_the_restricted_standard(manifests: Manifests) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    for pod in manifests.pod_templates().values():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(spec)
        kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
        assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim", "projected"}
        for item in spec["containers"]:
            context = item["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}


@every_scenario
def test_no_pod_should_get_credentials_or_service_links(manifests: Manifests) -> None:
    for pod in manifests.pod_templates().values():
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["enableServiceLinks"] is False
    for account in manifests.of_kind("ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


@every_scenario
def test_every_pod_should_write_to_its_tmp(manifests: Manifests) -> None:
    for pod in manifests.pod_templates().values():
        for container in pod["spec"]["containers"]:
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]
            assert {mount["name"] for mount in container["volumeMounts"]} <= {
                *(volume["name"] for volume in pod["spec"]["volumes"]),
                "runs",
            }


@every_scenario
def test_every_image_should_have_a_version(manifests: Manifests) -> None:
    for pod in manifests.pod_templates().values():
        for container in pod["spec"]["containers"]:
            name, _, tag = container["image"].rpartition(":")
            assert tag.startswith(APP_VERSION) if "kubebeast/" in name else re.match(r"v?\d+\.\d+\.\d+$", tag)
            assert container["resources"]["requests"]


@every_scenario
def test_every_port_should_name_its_protocol(manifests: Manifests) -> None:
    ports = [
        *(port for item in manifests.of_kind("Service") for port in item["spec"]["ports"]),
        *(
            port
            for pod in manifests.pod_templates().values()
            for container in pod["spec"]["containers"]
            for port in container.get("ports", [])
        ),
    ]

    assert ports
    assert [port for port in ports if port.get("protocol") != "TCP" or not port.get("name")] == []


@every_scenario
def test_every_service_should_select_pods_of_one_kind_and_name_their_ports(manifests: Manifests) -> None:
    pods = manifests.pod_templates().values()

    for service in manifests.of_kind("Service"):
        selector = service["spec"]["selector"].items()
        selected = [pod for pod in pods if selector <= pod["metadata"]["labels"].items()]
        assert len({pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in selected}) == 1
        for pod in selected:
            named = {port["name"] for part in pod["spec"]["containers"] for port in part.get("ports", [])}
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


def test_a_registry_should_be_put_before_every_image() -> None:
    for pod in render("restricted").pod_templates().values():
        assert pod["spec"]["containers"][0]["image"].startswith("registry.example.com/kubebeast/")
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_the_registry_of_a_parent_chart_should_be_used_unless_there_is_one_of_its_own() -> None:
    parent = {"global": {"imageRegistry": "parent.example.com", "other": {"of": "the parent"}}}
    for values, registry in ((parent, "parent"), (parent | {"image": {"registry": "own.example.com"}}, "own")):
        for pod in render(values).pod_templates().values():
            assert pod["spec"]["containers"][0]["image"].startswith(f"{registry}.example.com/kubebeast/")


def test_images_without_a_registry_should_be_refused_with_what_helps() -> None:
    error = render_error({"global": {}})

    assert "image.registry is empty" in error
    assert "--set image.registry=localhost" in error
    assert f"kind load docker-image localhost/kubebeast/learner:{APP_VERSION} " in error
    assert "oci://REGISTRY/charts/kubebeast" in error


def test_objects_of_the_user_should_be_of_the_release() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": '{{ include "kubebeast.fullname" . }}-quota'},
    }
    manifests = render({"extraObjects": [quota, {**quota, "metadata": {"name": "plain"}}]})

    assert [item["metadata"]["name"] for item in manifests.of_kind("ResourceQuota")] == ["demo-quota", "plain"]


def test_extras_should_be_off_by_default() -> None:
    kinds = {item["kind"] for item in render()}

    assert kinds == {"ConfigMap", "Deployment", "Pod", "Service", "ServiceAccount", "StatefulSet"}
