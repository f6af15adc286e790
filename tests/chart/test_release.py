"""A released chart contains its registry, and the texts that Artifact Hub shows."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.chart import APP_VERSION, CHART, helm

ROOT = CHART.parents[2]
REGISTRY = "registry.example.com/team"
SOURCE = "https://example.com/team/kubebeast"


def package(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(ROOT / "scripts" / "release" / "chart"),
        *words,
        "--only-package",
        f"--output={folder}",
    ]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    run = package(folder, REGISTRY, SOURCE_URL=SOURCE)
    assert run.returncode == 0, run.stderr
    return folder / "files" / f"kubebeast-{APP_VERSION}.tgz"


def read(packaged: Path, name: str) -> str:
    with tarfile.open(packaged) as archive:
        file = archive.extractfile(f"kubebeast/{name}")
        assert file is not None
        return file.read().decode()


def test_it_should_install_without_any_value(packaged: Path) -> None:
    manifests = [item for item in yaml.safe_load_all(helm(["template", "demo", str(packaged)])) if item]
    pods = [
        item["spec"].get("template", item)["spec"]
        for item in manifests
        if item["kind"] in ("StatefulSet", "Deployment")
    ]

    images = {container["image"] for pod in pods for container in pod["containers"]}
    assert images == {f"{REGISTRY}/kubebeast/{name}:{APP_VERSION}" for name in ("learner", "envserver")}


def test_artifact_hub_should_find_what_it_shows(packaged: Path) -> None:
    chart: dict[str, Any] = yaml.safe_load(read(packaged, "Chart.yaml"))
    annotations = {name: yaml.safe_load(text) for name, text in chart["annotations"].items()}

    assert chart["home"] == SOURCE and chart["sources"] == [SOURCE]
    assert chart["maintainers"] == [{"name": "The KubeBeast authors"}]
    assert annotations["artifacthub.io/license"] == "Apache-2.0"
    assert annotations["artifacthub.io/category"] == "ai-machine-learning"
    assert {image["name"] for image in annotations["artifacthub.io/images"]} == {"learner", "envserver"}
    files = [chart["icon"], *(link["url"] for link in annotations["artifacthub.io/links"])]
    assert [url for url in files if not (ROOT / url.partition(f"/v{APP_VERSION}/")[2]).is_file()] == []
    for change in annotations.get("artifacthub.io/changes", []):
        assert change["kind"] in ("added", "changed", "removed", "fixed", "security") and change["description"]


def test_its_readme_should_be_for_readers_without_the_repository(packaged: Path) -> None:
    text = read(packaged, "README.md")

    assert f"helm install pong oci://{REGISTRY}/charts/kubebeast --version {APP_VERSION}" in text
    assert "](../" not in text and "](ci" not in text


@pytest.mark.parametrize("words", [(), ("https://registry.example.com",)])
def test_what_is_no_registry_should_be_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    assert package(tmp_path, *words).returncode != 0
    assert list(tmp_path.rglob("*.tgz")) == []
