"""The metadata of the distributions on an index are complete and consistent."""

import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.unit.repository.documents import ROOT, repository_files

FOLDERS = sorted(path.parent for path in repository_files() if path.name == "pyproject.toml" and path.parent != ROOT)
LICENSE = (ROOT / "LICENSE").read_bytes()


def project(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return content


distribution = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: project(folder)["name"])


@distribution
def test_a_distribution_carries_the_licence_and_its_readme(folder: Path) -> None:
    assert project(folder)["license-files"] == ["LICENSE"]
    assert (folder / "LICENSE").read_bytes() == LICENSE
    assert (folder / project(folder)["readme"]).read_text(encoding="utf-8").startswith("# ")


@distribution
def test_a_readme_on_an_index_has_no_relative_links(folder: Path) -> None:
    text = (folder / project(folder)["readme"]).read_text(encoding="utf-8")

    assert [part for part in text.split("](")[1:] if not part.startswith("https://")] == []


@distribution
def test_a_distribution_says_the_same_of_itself_as_the_others(folder: Path) -> None:
    first, mine = project(FOLDERS[0]), project(folder)

    assert {key: mine[key] for key in ("requires-python", "license", "authors", "keywords")} == {
        key: first[key] for key in ("requires-python", "license", "authors", "keywords")
    }


def test_kubebeast_installs_all_that_trains_on_one_machine() -> None:
    (everything,) = (folder for folder in FOLDERS if project(folder)["name"] == "kubebeast")
    version = project(everything)["version"]

    assert project(everything)["dependencies"] == [
        f"kubebeast-envserver=={version}",
        f"kubebeast-learner[envs,observe,pool]=={version}",
    ]
    extras = project(everything)["optional-dependencies"].values()
    assert {Requirement(requirement).name for requirement in itertools.chain(*extras)} == {
        "kubebeast",
        "kubebeast-broker",
        "kubebeast-conformance",
        "kubebeast-envserver",
        "kubebeast-learner",
        "kubebeast-sweep",
    }


def test_every_extra_of_kubebeast_is_one_of_what_it_installs() -> None:
    folders = {project(folder)["name"]: folder for folder in FOLDERS}
    extras = project(folders["kubebeast"])["optional-dependencies"]
    wanted = {
        (requirement.name, extra)
        for requirement in map(Requirement, itertools.chain(*extras.values()))
        for extra in requirement.extras
    }

    assert {
        (name, extra) for name, extra in wanted if extra not in project(folders[name])["optional-dependencies"]
    } == set()
