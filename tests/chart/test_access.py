"""Token and TLS come from the right secrets, a pod sees only those it needs, and contradictions are refused."""

from typing import Any

import pytest
import yaml

from kubebeast_observe.errors import ROLE
from tests.chart.chart import Manifests, Object, environment, render, render_error

ISSUED = {"enabled": True, "certManager": {"enabled": True, "issuerRef": {"name": "training-ca"}}}
PEM = {"cert": "CERT", "key": "KEY", "ca": "CA"}
FOLDER = "/etc/kubebeast/access"


def files(template: Object) -> dict[str, str]:
    """Returns the Secret and its key of each file in the pod's access folder."""
    (volume,) = (item for item in template["spec"]["volumes"] if item["name"] == "access")
    return {
        item["path"]: f"{source['secret']['name']}:{item['key']}"
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }


def learner(manifests: Manifests) -> Object:
    return dict(manifests.get("StatefulSet")["spec"]["template"])


def env_server(manifests: Manifests) -> Object:
    return dict(manifests.get("Deployment")["spec"]["template"])


def learner_settings(manifests: Manifests) -> dict[str, Any]:
    return dict(yaml.safe_load(manifests.get("ConfigMap", "demo-learner")["data"]["learner.yaml"]))


def test_nothing_should_be_mounted_by_default() -> None:
    manifests = render()

    assert not manifests.has("Secret")
    for template in manifests.pod_templates().values():
        assert "access" not in [item["name"] for item in template["spec"]["volumes"]]


def test_a_token_should_reach_everybody_as_a_file_only() -> None:
    manifests = render({"token": {"enabled": True, "existingSecret": "mine", "key": "secret"}})

    for template in manifests.pod_templates().values():
        assert files(template) == {"token": "mine:secret"}
    assert learner_settings(manifests)["token_file"] == f"{FOLDER}/token"
    assert environment(env_server(manifests))["KUBEBEAST_TOKEN_FILE"] == f"{FOLDER}/token"
    assert not manifests.has("Secret")


def test_a_token_of_the_values_should_be_in_a_secret_only() -> None:
    manifests = render({"token": {"enabled": True, "value": "open-sesame"}})

    assert manifests.get("Secret", "demo-token")["data"] == {"token": "b3Blbi1zZXNhbWU="}
    assert files(learner(manifests)) == {"token": "demo-token:token"}
    assert "open-sesame" not in str(manifests.objects)


@pytest.mark.parametrize("source", [{}, {"value": "a", "existingSecret": "b"}])
def test_a_token_should_have_one_source(source: dict[str, str]) -> None:
    error = render_error({"token": {"enabled": True, **source}})

    assert "exactly one of token.value and token.existingSecret" in error


def test_env_servers_should_see_the_authority_and_not_the_learners_key() -> None:
    manifests = render({"tls": {"enabled": True, "existingSecret": "mine"}})

    assert files(learner(manifests)) == {"tls.crt": "mine:tls.crt", "tls.key": "mine:tls.key"}
    assert files(env_server(manifests)) == {"ca.crt": "mine:ca.crt"}
    assert "tls_ca" not in learner_settings(manifests)
    assert environment(env_server(manifests))["KUBEBEAST_TLS_CA"] == f"{FOLDER}/ca.crt"


def test_mutual_tls_should_give_both_sides_a_certificate_and_an_authority() -> None:
    tls = {"enabled": True, "mutual": True, "existingSecret": "mine", "client": {"existingSecret": "theirs"}}
    manifests = render({"tls": tls})

    assert files(learner(manifests)) == {name: f"mine:{name}" for name in ("tls.crt", "tls.key", "ca.crt")}
    expected = {"ca.crt": "mine:ca.crt", "tls.crt": "theirs:tls.crt", "tls.key": "theirs:tls.key"}
    assert files(env_server(manifests)) == expected
    assert files(manifests.get("Pod")) == expected
    assert learner_settings(manifests)["tls_ca"] == f"{FOLDER}/ca.crt"
    assert environment(env_server(manifests))["KUBEBEAST_TLS_CERT"] == f"{FOLDER}/tls.crt"


def test_certificates_of_the_values_should_become_secrets() -> None:
    tls = {"enabled": True, "mutual": True, **PEM, "client": {"cert": "C", "key": "K"}}
    manifests = render({"tls": tls})

    assert manifests.get("Secret", "demo-tls")["data"] == {"tls.crt": "Q0VSVA==", "tls.key": "S0VZ", "ca.crt": "Q0E="}
    assert manifests.get("Secret", "demo-tls-client")["data"] == {"tls.crt": "Qw==", "tls.key": "Sw=="}


def test_secrets_should_be_mounted_as_folders_so_that_they_rotate() -> None:
    manifests = render({"tls": {**ISSUED, "mutual": True}, "token": {"enabled": True, "value": "a"}})

    for template in manifests.pod_templates().values():
        mounts = [item for item in template["spec"]["containers"][0]["volumeMounts"] if item["name"] == "access"]
        assert mounts == [{"name": "access", "mountPath": FOLDER, "readOnly": True}]


def test_pods_should_roll_with_secrets_of_the_chart_and_with_no_others() -> None:
    def checksums(values: dict[str, Any]) -> set[str | None]:
        manifests = render(values)
        templates = (learner(manifests), env_server(manifests))
        return {item["metadata"].get("annotations", {}).get("checksum/access") for item in templates}

    first, second = (checksums({"token": {"enabled": True, "value": value}}) for value in ("a", "b"))

    assert None not in first | second
    assert first.isdisjoint(second)
    assert checksums({"token": {"enabled": True, "existingSecret": "mine"}}) == {None}
    assert checksums({"tls": ISSUED}) == {None}
    assert None not in checksums({"tls": {"enabled": True, **PEM}})


def test_a_certificate_should_have_every_name_of_the_learner() -> None:
    certificate = render({"tls": ISSUED}).get("Certificate")
    names = certificate["spec"]["dnsNames"]

    for host in ("demo-learner", "demo-learner-headless"):
        forms = ["", ".training", ".training.svc", ".training.svc.cluster.local"]
        assert {f"{host}{form}" for form in forms} <= set(names)
    assert certificate["spec"]["secretName"] == "demo-tls"
    assert certificate["spec"]["issuerRef"] == {"name": "training-ca", "kind": "Issuer", "group": "cert-manager.io"}
    assert "server auth" in certificate["spec"]["usages"]


def test_mutual_tls_should_have_a_second_certificate_unless_one_is_given() -> None:
    both = render({"tls": {**ISSUED, "mutual": True}})
    given = render({"tls": {**ISSUED, "mutual": True, "client": {"existingSecret": "theirs"}}})

    assert "client auth" in both.get("Certificate", "demo-tls-client")["spec"]["usages"]
    assert [item["metadata"]["name"] for item in given.of_kind("Certificate")] == ["demo-tls"]


def test_another_name_in_the_certificate_should_be_expected_by_env_servers() -> None:
    manifests = render({"tls": {"enabled": True, "existingSecret": "mine", "serverName": "learner.example.com"}})

    assert environment(env_server(manifests))["KUBEBEAST_TLS_SERVER_NAME"] == "learner.example.com"


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        ({"enabled": True}, "tls: set exactly one of tls.existingSecret"),
        ({**ISSUED, "existingSecret": "mine"}, "tls: set exactly one of tls.existingSecret"),
        ({"enabled": True, **PEM, "existingSecret": "mine"}, "tls: set exactly one of tls.existingSecret"),
        ({"enabled": True, "cert": "CERT"}, "tls.cert, tls.key and tls.ca must be set together"),
        ({"enabled": True, "certManager": {"enabled": True}}, "tls.certManager.issuerRef.name is required"),
        ({"mutual": True}, "tls.mutual requires tls.enabled"),
        ({"enabled": True, "mutual": True, "existingSecret": "mine"}, "tls.mutual requires tls.client.existingSecret"),
        (
            {"enabled": True, "mutual": True, "existingSecret": "mine", "client": {"cert": "C"}},
            "tls.client.cert and tls.client.key must be set together",
        ),
        (
            {"enabled": True, "mutual": True, **PEM, "client": {"cert": "C", "key": "K", "existingSecret": "t"}},
            "set only one of tls.client.existingSecret",
        ),
    ],
)
def test_contradictions_should_be_refused_by_name(tls: dict[str, Any], message: str) -> None:
    assert message in render_error({"tls": tls})


def test_the_fleet_role_should_allow_what_the_command_needs_and_no_more() -> None:
    subject = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
    manifests = render({"fleetRole": {"create": True, "subjects": [subject]}})
    rules = {
        (group, resource): set(rule["verbs"])
        for rule in manifests.get("Role")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }

    assert rules == {
        ("apps", "deployments"): {"get", "list"},
        ("apps", "statefulsets"): {"get", "list"},
        ("batch", "jobs"): {"list"},
        ("", "events"): {"list"},
        ("apps", "deployments/scale"): {"get", "patch", "update"},
        ("", "pods"): {"get", "list"},
        ("", "pods/proxy"): {"get"},
        ("autoscaling", "horizontalpodautoscalers"): {"list"},
    }
    assert manifests.get("RoleBinding")["subjects"] == [subject]
    assert not render().has("Role")


def test_the_role_should_be_the_one_that_kubebeast_fleet_asks_for() -> None:
    role = render({"fleetRole": {"create": True}}).get("Role")

    assert role["rules"] == yaml.safe_load(ROLE.format(namespace="training"))["rules"]
