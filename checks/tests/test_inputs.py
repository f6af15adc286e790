"""The hash of a group's inputs changes if they change, and only then."""

from pathlib import Path

import pytest

from checks.groups import Group
from checks.inputs import Tree
from checks.tests.repositories import commit, git, make_repository

GROUP = Group(name="core", command="make core", inputs=("src", "!src/notes.md"))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "clone", {"src/a.cc": "1", "src/notes.md": "n", "docs/b.md": "2"})


def digest(clone: Path, group: Group = GROUP) -> str:
    return Tree(clone).digest(group)


def test_another_clone_of_the_same_contents_has_the_same_hash(clone: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other", {"src/a.cc": "1", "docs/b.md": "other"})

    assert digest(clone) == digest(other)


@pytest.mark.parametrize("path", ["docs/b.md", "src/notes.md", "new.txt"])
def test_a_file_that_is_no_input_changes_nothing(path: str, clone: Path) -> None:
    before = digest(clone)
    (clone / path).write_text("changed")

    assert digest(clone) == before


@pytest.mark.parametrize("path", ["src/a.cc", "src/new/b.cc"])
def test_a_change_counts_before_it_is_committed_and_after_it(path: str, clone: Path) -> None:
    before = digest(clone)
    (clone / path).parent.mkdir(exist_ok=True)
    (clone / path).write_text("changed")
    uncommitted = digest(clone)
    commit(clone)

    assert before != uncommitted
    assert uncommitted == digest(clone)


def test_a_file_that_is_deleted_or_becomes_executable_counts(clone: Path) -> None:
    before = digest(clone)
    (clone / "src" / "a.cc").chmod(0o755)
    executable = digest(clone)
    (clone / "src" / "a.cc").unlink()

    assert len({before, executable, digest(clone)}) == 3


@pytest.mark.parametrize(
    "other",
    [
        Group(name="core", command="make other", inputs=GROUP.inputs),
        Group(name="core", command=GROUP.command, inputs=GROUP.inputs, tools=("echo 1",)),
        Group(name="core", command=GROUP.command, inputs=GROUP.inputs, needs=("make tools",)),
    ],
    ids=["command", "tool", "need"],
)
def test_another_command_tool_or_need_counts(other: Group, clone: Path) -> None:
    assert digest(clone, other) != digest(clone)


def test_a_clone_is_clean_without_uncommitted_and_untracked_files(clone: Path) -> None:
    assert Tree(clone).is_clean()
    (clone / "untracked").write_text("")
    assert not Tree(clone).is_clean()
    (clone / "untracked").unlink()
    (clone / "src" / "a.cc").write_text("changed")
    assert not Tree(clone).is_clean()


def test_what_the_user_has_staged_stays_staged(clone: Path) -> None:
    (clone / "src" / "a.cc").write_text("staged")
    git(clone, "add", "src/a.cc")
    (clone / "src" / "a.cc").write_text("not staged")
    Tree(clone)
    git(clone, "commit", "--dry-run", "--quiet")
    git(clone, "checkout-index", "--force", "src/a.cc")

    assert (clone / "src" / "a.cc").read_text() == "staged"
