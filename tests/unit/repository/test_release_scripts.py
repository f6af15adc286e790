"""Scripts of a release check their arguments and pass the right ones to other programs."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.repository.documents import ROOT

DIGEST = f"sha256:{'0123456789abcdef' * 4}"


def run(script: str, *arguments: str, path: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Runs a script of scripts/, with the programs in `path` before all others."""
    environment = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    command = [str(ROOT / "scripts" / script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def program(folder: Path, name: str) -> Path:
    """Puts a program into the folder that appends its arguments and its input to <name>.log beside it."""
    log = folder / f"{name}.log"
    file = folder / name
    file.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\n[ "$1" != release ] || cat >>"{log}"\n', encoding="utf-8")
    file.chmod(0o755)
    return log


@pytest.mark.parametrize("version", ["0.1.0", "v0.1.0"])
def test_notes_are_the_section_of_a_version(version: str) -> None:
    notes = run("release/notes", version).stdout

    assert notes.startswith("### Added\n")
    assert "Wire contract v1: env-servers dial the learner" in notes
    assert "## [" not in notes


@pytest.mark.parametrize("arguments", [("0.1",), ("9.9.9",), ()])
def test_a_version_without_notes_is_refused(arguments: tuple[str, ...]) -> None:
    done = run("release/notes", *arguments)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("notes: ")


def test_checksums_are_of_every_file_and_notice_a_change(tmp_path: Path) -> None:
    for name in ("a.whl", "b c.tgz"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]

    assert run("release/checksums", str(tmp_path)).returncode == 0
    assert run("release/checksums", str(tmp_path)).returncode == 0, "a second run leaves SHA256SUMS out of itself"
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "a.whl: OK\nb c.tgz: OK\n"
    (tmp_path / "a.whl").write_text("other", encoding="utf-8")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, timeout=60, check=False).returncode == 1


def test_an_empty_folder_has_no_checksums(tmp_path: Path) -> None:
    assert "nothing to publish" in run("release/checksums", str(tmp_path)).stderr


def test_everything_is_signed_by_its_digest(tmp_path: Path) -> None:
    log = program(tmp_path, "cosign")
    references = [f"ghcr.io/a/kubebeast/{name}@{DIGEST}" for name in ("learner", "envserver")]
    file = tmp_path / "references"
    file.write_text("\n".join(references) + "\n", encoding="utf-8")

    assert run("release/sign", str(file), path=tmp_path).returncode == 0
    signed = log.read_text(encoding="utf-8").splitlines()
    assert signed == [f"sign --yes --recursive {reference}" for reference in references]


@pytest.mark.parametrize("reference", ["ghcr.io/a/learner:0.2.0", "ghcr.io/a/learner@sha256:12", f"@{DIGEST}", ""])
def test_a_reference_without_a_digest_keeps_all_from_being_signed(reference: str, tmp_path: Path) -> None:
    log = program(tmp_path, "cosign")
    file = tmp_path / "references"
    file.write_text(f"ghcr.io/a/learner@{DIGEST}\n{reference}\n", encoding="utf-8")

    done = run("release/sign", str(file), path=tmp_path)

    assert done.returncode == 1
    assert "is not NAME@sha256:DIGEST" in done.stderr
    assert not log.exists()


def test_wheels_for_every_python_go_into_one_folder() -> None:
    assert "expected a folder" in run("release/native-wheels", "dist", "other").stderr


@pytest.mark.parametrize("image", ["", "kindest/node:v1.36.1", f"other/node:v1.36.1@{DIGEST}", "latest"])
def test_a_cluster_is_made_of_a_node_image_with_its_digest_only(image: str, tmp_path: Path) -> None:
    logs = [program(tmp_path, name) for name in ("kind", "docker")]

    done = run("kind-e2e", image, path=tmp_path)

    assert done.returncode == 1
    assert "kindest/node:v1.MINOR.PATCH@sha256:DIGEST" in done.stderr
    assert [log for log in logs if log.exists()] == []


def files_of_a_release(folder: Path) -> None:
    (folder / "files").mkdir()
    (folder / "files" / "kubebeast.tgz").write_text("chart", encoding="utf-8")
    assert run("release/checksums", str(folder / "files")).returncode == 0


def test_a_release_has_the_notes_and_the_files_of_its_version(tmp_path: Path) -> None:
    log = program(tmp_path, "gh")
    files_of_a_release(tmp_path)
    version = run("release/version").stdout.strip()

    done = run("release/github", f"v{version}", str(tmp_path / "files"), path=tmp_path)

    assert done.returncode == 0, done.stderr
    command, _, notes = log.read_text(encoding="utf-8").partition("\n")
    assert command.startswith(f"release create v{version} --verify-tag --title KubeBeast {version} ")
    assert "--prerelease" not in command
    assert command.split()[-2:] == [str(tmp_path / "files" / name) for name in ("SHA256SUMS", "kubebeast.tgz")]
    assert notes == run("release/notes", version).stdout


@pytest.mark.parametrize(("tag", "changed"), [("v9.9.9", ""), ("main", ""), (None, "other")])
def test_another_tag_or_a_changed_file_makes_no_release(tag: str | None, changed: str, tmp_path: Path) -> None:
    log = program(tmp_path, "gh")
    files_of_a_release(tmp_path)
    if changed:
        (tmp_path / "files" / "kubebeast.tgz").write_text(changed, encoding="utf-8")
    tag = tag or f"v{run('release/version').stdout.strip()}"

    assert run("release/github", tag, str(tmp_path / "files"), path=tmp_path).returncode == 1
    assert not log.exists()
