"""scripts/images and scripts/release/images call the image builder with the right arguments."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.repository.documents import ROOT

REGISTRY = "registry.example.com/team"
DIGEST = "0123456789abcdef" * 4
BUILDER = f"""#!/bin/sh
echo "$@" >>"$0.log"
while [ $# -gt 0 ]; do
  case $1 in
    --digestfile) echo sha256:{DIGEST} >"$2" ;;
    --metadata-file) printf '{{\n  "containerimage.digest": "sha256:{DIGEST}",\n}}\n' >"$2" ;;
  esac
  shift
done
"""


class Builder:
    """A script in place of the builder; it records its arguments."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.program = folder / name
        self.program.write_text(BUILDER)
        self.program.chmod(0o755)

    def run(self, script: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"IMAGE_TOOL": str(self.program), "OUTPUT": str(self._folder / "out")} | environ
        return subprocess.run([ROOT / script, *words], env=env, capture_output=True, text=True, timeout=60, check=False)

    def calls(self) -> list[str]:
        return Path(f"{self.program}.log").read_text().splitlines()

    def written(self, name: str) -> list[str]:
        return (self._folder / "out" / name).read_text().splitlines()


@pytest.mark.parametrize("name", ["docker", "buildah"])
def test_a_release_knows_the_digest_of_every_image_that_it_pushed(name: str, tmp_path: Path) -> None:
    builder = Builder(tmp_path, name)
    done = builder.run("scripts/release/images", REGISTRY, "1.2.3")
    assert done.returncode == 0, done.stderr

    tags = ["envserver:1.2.3", "envserver-legacy:1.2.3", "learner:1.2.3", "learner:1.2.3-cuda"]
    assert builder.written("references") == [f"{REGISTRY}/kubebeast/{tag}@sha256:{DIGEST}" for tag in tags]
    assert builder.written("subjects")[-1] == f"{DIGEST}  {REGISTRY}/kubebeast/learner"


def test_docker_builds_for_both_architectures_with_provenance(tmp_path: Path) -> None:
    builder = Builder(tmp_path, "docker")
    builder.run("scripts/release/images", REGISTRY, "1.2.3", IMAGES="learner-cuda")

    (call,) = builder.calls()
    assert "-f docker/learner.Dockerfile" in call and "TORCH_VARIANT=cuda" in call
    assert "--platform linux/amd64,linux/arm64" in call
    assert "--provenance=mode=max --sbom=true" in call


def test_a_builder_that_names_no_digest_ends_the_release(tmp_path: Path) -> None:
    builder = Builder(tmp_path, "podman")
    builder.program.write_text('#!/bin/sh\n[ $1 = build ] || : >"$3"\n')
    done = builder.run("scripts/release/images", REGISTRY, "1.2.3", IMAGES="envserver")

    assert done.returncode == 1
    assert "names no digest of envserver" in done.stderr


@pytest.mark.parametrize("words", [(), ("oci://registry.example.com",)])
def test_what_is_no_registry_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    builder = Builder(tmp_path, "docker")

    assert "expected a registry" in builder.run("scripts/release/images", *words).stderr
    assert not Path(f"{builder.program}.log").exists()


def test_images_for_this_machine_have_a_name_that_no_registry_has(tmp_path: Path) -> None:
    builder = Builder(tmp_path, "podman")
    assert builder.run("scripts/images", "1.2.3", SOURCE_URL="https://example.com/kubebeast").returncode == 0

    names = [call.split()[4] for call in builder.calls()]
    assert names == ["localhost/kubebeast/envserver:1.2.3", "localhost/kubebeast/learner:1.2.3"]
    assert all("SOURCE_URL=https://example.com/kubebeast" in call and "CREATED=2" in call for call in builder.calls())
