"""A namespace for each file of tests, on the cluster of KUBECONFIG."""

import secrets
from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Namespace, run
from tests.e2e.release import Release


@pytest.fixture(scope="session", autouse=True)
def cluster() -> None:
    """Fails early, with kubectl's own message, if there is no cluster."""
    run("kubectl", "get", "nodes")


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    """A namespace that is deleted afterwards."""
    namespace = Namespace(f"kubebeast-e2e-{secrets.token_hex(3)}")
    run("kubectl", "create", "namespace", namespace.name)
    yield namespace
    run("kubectl", "delete", "namespace", namespace.name, "--wait=false")


@pytest.fixture(scope="module")
def release(namespace: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """A release that is not installed yet; uninstalled afterwards."""
    release = Release(namespace, tmp_path_factory.mktemp("values"))
    try:
        yield release
    finally:
        release.uninstall()
