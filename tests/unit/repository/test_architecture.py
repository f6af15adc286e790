"""The map of the repository in docs/architecture.md is complete, and its targets exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "architecture.md"
PACKAGES = (
    "services/common/kubebeast_common",
    "services/conformance/kubebeast_conformance",
    "services/envserver/kubebeast_envserver",
    "services/fleet/kubebeast_fleet",
    "services/learner/kubebeast_learner",
    "services/observe/kubebeast_observe",
    "services/runs/kubebeast_runs",
    "services/broker/kubebeast_broker",
    "services/sweep/kubebeast_sweep",
    "native/src/core",
)


def section(heading: str) -> str:
    """Returns the text from a heading to the next heading of any level."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.split(r"^#+ ", text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(heading: str) -> list[str]:
    return re.findall(r"^\| .*`.*$", section(heading), flags=re.MULTILINE)


def in_backticks(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_typical_changes_name_files_that_exist() -> None:
    table = rows("Typical changes")
    paths = [name for row in table for name in in_backticks(row) if "/" in name]

    assert len(table) >= 10
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_what_a_typical_change_is_about_stands_in_its_file() -> None:
    table = "\n".join(rows("Typical changes"))
    named = re.findall(r"`([\w/.]+)`: (?:a field of |a )?`(\w+)`", table)

    assert len(named) > 4
    assert [name for path, name in named if re.search(rf"\b{name}\b", (ROOT / path).read_text()) is None] == []


def test_files_beside_a_named_one_exist() -> None:
    for row in rows("Typical changes"):
        for path, neighbours in re.findall(r"`([\w/.]+)`, or its neighbours ((?:`\w+\.py`(?:, )?)+)", row):
            folder = (ROOT / path).parent
            assert [name for name in in_backticks(neighbours) if not (folder / name).is_file()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_has_a_row(package: str) -> None:
    folder = ROOT / package
    here = {path.name for path in folder.iterdir() if any(file.suffix in (".py", ".h") for file in path.rglob("*"))}
    named = [name for row in rows(package) for name in in_backticks(row.split("|")[1])]

    assert here <= set(named)
    assert [name for name in named if name not in here and not (folder / f"{name}.py").is_file()] == []


def test_every_place_of_the_top_level_exists() -> None:
    names = [name for row in rows("Repository layout") + rows("Tests") for name in in_backticks(row.split("|")[1])]

    assert len(names) > 15
    assert [name for name in names if not (ROOT / name).exists()] == []
