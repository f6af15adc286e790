"""Patterns, sets and owners in the table of groups."""

from pathlib import Path

import pytest

from checks.groups import Group, load, matches, owner

TABLE = """
[sets]
base = ["Makefile"]
core = ["native", "!native/fuzz"]
[groups.core]
command = "make core"
inputs = ["@core"]
[groups.unit]
tests = ["tests/unit"]
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "groups.toml"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("patterns", "path", "is_input"),
    [
        (["docs"], "docs/start.md", True),
        (["docs"], "docs.md", False),
        (["docs/start.md"], "docs/start.md", True),
        (["native", "!native/fuzz"], "native/fuzz/run", False),
        (["!native/fuzz", "native"], "native/fuzz/run", True),
        (["*.md"], "services/common/README.md", True),
        (["*.md"], "README.md.txt", False),
        ([], "README.md", False),
    ],
)
def test_the_last_pattern_that_matches_decides(patterns: list[str], path: str, *, is_input: bool) -> None:
    assert matches(patterns, path) == is_input


def test_sets_are_expanded_and_every_group_has_the_base_and_its_own_tests(table: Path) -> None:
    core, unit = load(table)

    assert core.inputs == ("Makefile", "native", "!native/fuzz")
    assert unit.inputs == ("Makefile", "tests/unit")


@pytest.mark.parametrize(
    ("line", "message"),
    [('inputs = ["@nothing"]', "unit names the set @nothing"), ("color = 3", "unit has unknown keys: color")],
)
def test_a_mistake_is_named(line: str, message: str, table: Path) -> None:
    table.write_text(f"{TABLE}{line}\n")

    with pytest.raises(ValueError, match=message):
        load(table)


def test_a_file_of_tests_belongs_to_the_group_that_names_the_longest_path() -> None:
    folder = Group(name="folder", inputs=(), tests=("tests/unit",))
    file = Group(name="file", inputs=(), tests=("tests/unit/test_a.py",))

    assert owner([file, folder], "tests/unit/test_a.py") is file
    assert owner([file, folder], "tests/unit/test_b.py") is folder
    assert owner([file, folder], "tests/system/test_c.py") is None
