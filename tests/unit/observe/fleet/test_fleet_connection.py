"""Commands find their cluster and namespace."""

from pathlib import Path

import pytest
import yaml
from kubernetes.config import incluster_config

from kubebeast_observe.errors import WatchError
from kubebeast_observe.fleet import connection
from kubebeast_observe.fleet.connection import connect
from kubebeast_observe.settings import ClusterConfig


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a pod nor with a kubeconfig in the environment."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Writes two contexts, neither of them the current one."""
    path = tmp_path / "kubeconfig"
    content = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}} for name in ("one", "two")],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "one", "user": "me"}},
            {"name": "two", "context": {"cluster": "two", "user": "me", "namespace": "train"}},
        ],
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the files and variables that Kubernetes gives to a pod."""
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text(f"{name} of the pod\n", encoding="utf-8")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr(connection, "POD_NAMESPACE_FILE", tmp_path / "namespace")


def test_the_namespace_is_the_contexts(kubeconfig: Path) -> None:
    found = connect(ClusterConfig(kubeconfig=kubeconfig, context="two"))
    assert (found.server, found.namespace) == ("https://two:6443", "train")


def test_a_context_without_a_namespace_means_default(kubeconfig: Path) -> None:
    assert connect(ClusterConfig(kubeconfig=kubeconfig, context="one")).namespace == "default"


def test_a_named_namespace_beats_the_contexts(kubeconfig: Path) -> None:
    assert connect(ClusterConfig(kubeconfig=kubeconfig, context="two", namespace="mine")).namespace == "mine"


def test_a_pod_means_its_own_cluster_and_namespace(pod: None) -> None:
    found = connect(ClusterConfig())
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "namespace of the pod")


def test_a_kubeconfig_beats_the_pods_own_cluster(pod: None, kubeconfig: Path) -> None:
    assert connect(ClusterConfig(kubeconfig=kubeconfig, context="two")).server == "https://two:6443"


@pytest.mark.parametrize("content", ["", "clusters: 3", "[", "contexts:\n- name: one\n", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(WatchError, match=f"kubeconfig {path} cannot be used: "):
        connect(ClusterConfig(kubeconfig=path))


def test_an_unknown_context_is_refused_by_name(kubeconfig: Path) -> None:
    with pytest.raises(WatchError, match="three"):
        connect(ClusterConfig(kubeconfig=kubeconfig, context="three"))
