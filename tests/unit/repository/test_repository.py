"""The commands of the documents exist, source files are short, and no file depends on one machine."""

import dataclasses
import re
import tomllib

import pytest

from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.settings import setting_types
from kubebeast_envserver.config import EnvServerConfig
from tests.unit.repository.documents import ROOT, repository_files, text_files
from tests.unit.repository.shell import make_targets

MAX_LINES = 350
MAX_README_LINES = 120
# Directories of a development machine; paths below them work on that machine only.
MACHINE_PATH = re.compile(r"(?<![\w.$/~-])/(?:work|root|home/\w+|Users/\w+)/[\w.-]+")


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(readme().splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/start.md"])
def test_every_make_command_of_a_document_is_a_target(document: str) -> None:
    commands = set(re.findall(r"\bmake ([a-z][a-z0-9-]*)", (ROOT / document).read_text(encoding="utf-8")))

    assert commands
    assert commands <= make_targets()


def test_every_extra_of_the_learner_is_explained() -> None:
    project = tomllib.loads((ROOT / "services" / "learner" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "start.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert set(project["optional-dependencies"]) == set(rows)


def test_every_path_that_contributors_read_exists() -> None:
    paths = re.findall(r"`([\w.]+/[\w./]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))

    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_flag_of_the_readme_is_accepted_by_its_command() -> None:
    env_server = {field.name for field in dataclasses.fields(EnvServerConfig)}
    kubebeast = {"config", "recipe", "help"}.union(
        *(setting_types(command.config_type) for command in find_commands().values())
    )
    flags = [
        (line, flag.replace("-", "_"))
        for line in readme().splitlines()
        if not line.startswith("helm ")
        for flag in re.findall(r"(?<![\w-])--([a-z][a-z_-]*)", line)
    ]

    assert flags
    unknown = [
        flag for line, flag in flags if flag not in (env_server if "kubebeast-envserver --" in line else kubebeast)
    ]
    assert unknown == []


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [f"{path}: {match}" for path, text in text_files() for match in MACHINE_PATH.findall(text)]

    assert found == []


def test_every_source_file_fits_a_room() -> None:
    sources = [p for p in repository_files() if p.suffix in (".py", ".h", ".cc", ".sh") and "_pb2" not in p.name]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}

    assert lengths
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}
