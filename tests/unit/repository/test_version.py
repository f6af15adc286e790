"""All released parts have one version; the table in pyproject.toml lists every place that holds it."""

import re
import subprocess
import tomllib

import pytest

from tests.unit.repository.documents import ROOT, text_files

TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["bumpversion"]
VERSION: str = TABLE["current_version"]
# Places of other versions: histories, measurements, locks of other packages, examples of tests.
ELSEWHERE = re.compile(
    r"CHANGELOG\.md|docs/(decisions\.md|design/|results/)|benchmarks/|tests/|.*(requirements|constraints|lock).*\.txt"
)


def release_version(*words: str) -> subprocess.CompletedProcess[str]:
    script = [str(ROOT / "scripts" / "release" / "version"), *words]
    return subprocess.run(script, capture_output=True, text=True, timeout=60)


def without_known_places(path: str, text: str) -> str:
    """Returns the text of a file without the version in the places that the table lists."""
    if path == "pyproject.toml":
        text = text.replace(f'current_version = "{VERSION}"', "")
    for place in TABLE["files"]:
        if place["filename"] == path:
            text = text.replace(place.get("search", "{current_version}").format(current_version=VERSION), "")
    return text


@pytest.mark.parametrize("place", TABLE["files"], ids=lambda place: place["filename"])
def test_every_place_of_the_table_has_the_version(place: dict[str, str]) -> None:
    search = place.get("search", "{current_version}").format(current_version=VERSION)

    assert search in (ROOT / place["filename"]).read_text(encoding="utf-8")


def test_no_file_has_the_version_where_the_table_does_not_know_it() -> None:
    number = re.compile(rf"(?<![\d.]){re.escape(VERSION)}(?![\d.]*\d)")
    found = [
        f"{path}: {line}"
        for path, text in text_files()
        if not ELSEWHERE.match(str(path))
        for line in without_known_places(str(path), text).splitlines()
        if number.search(line)
    ]

    assert found == []


def test_every_distribution_has_the_version_and_wants_it_of_the_others() -> None:
    projects = [
        tomllib.loads(text)["project"]
        for path, text in text_files()
        if path.name == "pyproject.toml" and "[project]" in text
    ]
    wanted = [
        requirement
        for project in projects
        for group in (project.get("dependencies", []), *project.get("optional-dependencies", {}).values())
        for requirement in group
        if requirement.startswith("kubebeast-")
    ]

    assert {project["version"] for project in projects} == {VERSION}
    assert wanted
    assert [requirement for requirement in wanted if not requirement.endswith(f"=={VERSION}")] == []


def test_a_tag_of_another_version_is_refused() -> None:
    assert release_version().stdout == f"{VERSION}\n"
    assert release_version("check", f"v{VERSION}").returncode == 0
    refused = release_version("check", "v0.0.1")
    assert refused.returncode == 1
    assert f"v{VERSION}" in refused.stderr
