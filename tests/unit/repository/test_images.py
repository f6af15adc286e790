"""The images, and the services on one machine that run them, are minimal, pinned and restricted."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.settings import setting_types
from kubebeast_envserver.config import parse
from kubebeast_learner.config.recipes import choose_recipe

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
COMPILERS = re.compile(r"\b(g\+\+|gcc|cmake|clang|build-essential|[\w+.-]+-dev)\b")


def stages(dockerfile: Path) -> list[str]:
    """Returns the text of every stage, from its FROM on."""
    return re.split(r"^(?=FROM )", dockerfile.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def compose(**variables: str) -> dict[str, Any]:
    """Returns compose.yaml with these variables set and defaults for all others."""
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    filled = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda match: variables.get(match[1], match[2]), text)
    content: dict[str, Any] = yaml.safe_load(filled)
    return content


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_the_final_image_runs_as_a_user_by_number_and_has_a_compiler_for_a_gpu_only(dockerfile: Path) -> None:
    final = stages(dockerfile)[-1]

    assert re.search(r"^USER 10001:10001$", final, flags=re.MULTILINE)
    assert [line for line in final.splitlines() if COMPILERS.search(line) and " cuda) " not in line] == []


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_a_build_pulls_nothing_but_one_base_image_by_its_digest(dockerfile: Path) -> None:
    text = dockerfile.read_text(encoding="utf-8")

    assert "syntax=" not in text
    assert {stage.split()[1] for stage in stages(dockerfile)} == {"${PYTHON_IMAGE}"}
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", text, flags=re.MULTILINE)
    assert re.fullmatch(r"python:3\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


def test_all_images_have_the_same_base() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DOCKERFILES]

    assert len({re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", text, flags=re.MULTILINE)[0] for text in texts}) == 1


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_what_comes_from_an_index_is_checked_by_hash(dockerfile: Path) -> None:
    commands = stages(dockerfile)[0].replace("\\\n", " ").splitlines()
    installs = [part for line in commands for part in line.split("&&") if re.search(r"pip install", part)]
    own = [part for part in installs if "--no-index" in part]

    assert own
    unchecked = [part for part in installs if part not in own and "--require-hashes" not in part]
    assert [part for part in unchecked if "${PIP_PACKAGES}" not in part] == []


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_an_image_says_what_it_is_and_where_it_is_from(dockerfile: Path) -> None:
    names = set(re.findall(r"org\.opencontainers\.image\.(\w+)=\"[^\"]", stages(dockerfile)[-1]))

    assert names == {
        *("title", "description", "vendor", "licenses"),
        *("version", "revision", "created", "url", "source"),
    }


@pytest.mark.parametrize("path", sorted((ROOT / "docker").iterdir()), ids=lambda path: path.name)
def test_a_build_names_no_architecture(path: Path) -> None:
    assert re.search(r"amd64|x86|arm64|aarch64", path.read_text(encoding="utf-8")) is None


def requirements(*words: str) -> set[str]:
    """Returns the names that locks/requirements.py prints, without versions."""
    script = [sys.executable, str(ROOT / "locks" / "requirements.py")]
    printed = subprocess.run([*script, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    return {re.split(r"[<>=\[]", line)[0] for line in printed.splitlines()}


def test_third_party_requirements_are_those_of_the_distribution_and_of_our_own_that_it_needs() -> None:
    names = requirements("services/envserver[atari]")

    assert {"grpcio", "protobuf", "numpy", "gymnasium", "ale-py"} <= names
    assert "torch" not in names
    assert not any("kubebeast" in name or name.startswith("./") for name in names)


def test_the_image_for_older_gym_has_what_its_environments_need() -> None:
    (extras,) = re.findall(r"ENVSERVER_EXTRAS=([\w,-]+)", (ROOT / "scripts" / "images").read_text(encoding="utf-8"))

    assert {"gym", "shimmy", "atari-py", "ale-py"} <= requirements(f"services/envserver[{extras}]")


def test_environments_are_in_the_learners_image_only_where_its_extras_name_some() -> None:
    dockerfile = (ROOT / "docker" / "learner.Dockerfile").read_text(encoding="utf-8")
    (default,) = re.findall(r"^ARG LEARNER_EXTRAS=(\S+)$", dockerfile, flags=re.MULTILINE)
    learner = f"services/learner[{default}]"

    assert requirements("--own", learner) == {
        "./native",
        "./protos",
        "./services/broker",
        "./services/common",
        "./services/fleet",
        "./services/learner",
        "./services/observe",
        "./services/runs",
        "./services/sweep",
    }
    assert "ale-py" not in requirements(learner)
    for extra in ("envs", "video", "atari"):
        with_environments = f"services/learner[{default},{extra}]"
        assert "./services/envserver" in requirements("--own", with_environments)


def test_the_services_of_one_machine_are_restricted() -> None:
    for service in compose()["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service["image"].endswith(":latest")


def test_the_learner_of_one_machine_gets_flags_that_exist() -> None:
    command, *flags = compose()["services"]["learner"]["command"]
    names = {flag.removeprefix("--").partition("=")[0].replace("-", "_") for flag in flags}

    assert names <= set(setting_types(find_commands()[command].config_type))


@pytest.mark.parametrize(
    ("variables", "env", "recipe"),
    [
        ({}, "kubebeast_envserver.catch:Catch-v0", None),
        ({"ENVIRONMENT": "PongNoFrameskip-v4"}, "PongNoFrameskip-v4", "atari"),
    ],
)
def test_learner_and_env_servers_of_one_machine_are_told_the_same_environment(
    variables: dict[str, str], env: str, recipe: str | None
) -> None:
    services = compose(**variables)["services"]
    config = parse(services["envserver"]["command"], environ={})

    assert config.address == "learner:4431"
    assert config.env == env
    assert f"--env={env}" in services["learner"]["command"]
    chosen = choose_recipe("auto", env)
    assert (chosen and chosen.name) == recipe
