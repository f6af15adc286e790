"""The table of groups.toml."""

import dataclasses
import fnmatch
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("groups.toml")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Checks that are run, and skipped, together."""

    name: str
    inputs: tuple[str, ...]
    """Patterns of the files that decide: a path, a folder with all below it, or with `*`. `!` leaves out."""
    command: str = ""
    """A line of bash. Empty: the group is of `tests`, which share one call of pytest with those of other groups."""
    tests: tuple[str, ...] = ()
    """Files and folders of tests. A file belongs to the group that names the longest path."""
    tools: tuple[str, ...] = ()
    """Commands that print versions of programs and libraries from outside of the locks."""
    packages: tuple[str, ...] = ()
    """Commands that install system packages: once a run, before anything else, because only one can at a time."""
    needs: tuple[str, ...] = ()
    """Commands that make available what else it needs, each once a run."""
    beside: bool = False
    """Its command runs beside all others, because it waits for downloads and pods most of the time."""
    always: bool = False
    """No stamp spares it."""
    nightly: bool = False
    """It costs much, and its inputs are the few that its promise is about; the nightly run does it in any case."""
    cluster: bool = False
    """It needs the program that KUBEBEAST_CLUSTER_TOOL names."""
    in_make_test: bool = False
    """`make test` has it, too, without the tests marked slow."""


def load(path: Path = TABLE) -> list[Group]:
    """All groups in the order in which they run.

    Raises:
        ValueError: A group has an unknown key, or names a set that is not there.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    sets: dict[str, list[str]] = table["sets"]
    return [_group(name, row, sets) for name, row in table["groups"].items()]


def matches(patterns: Iterable[str], path: str) -> bool:
    """Whether the patterns name the file `path`, relative to the repository: the last match decides."""
    included = False
    for pattern in patterns:
        if _is_below(pattern.removeprefix("!"), path):
            included = not pattern.startswith("!")
    return included


def owner(groups: Sequence[Group], test: str) -> Group | None:
    """The group of a file of tests."""
    owners = [(len(pattern), group) for group in groups for pattern in group.tests if _is_below(pattern, test)]
    return max(owners, key=lambda each: each[0])[1] if owners else None


def _group(name: str, row: Mapping[str, Any], sets: Mapping[str, Sequence[str]]) -> Group:
    unknown = set(row) - {field.name for field in dataclasses.fields(Group)}
    if unknown:
        raise ValueError(f"{name} has unknown keys: {', '.join(sorted(unknown))}")
    lists: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    inputs = ("@base", *lists.pop("inputs", ()), *lists.get("tests", ()))
    return Group(name=name, inputs=tuple(_expand(name, inputs, sets)), **lists)


def _expand(name: str, patterns: Iterable[str], sets: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for pattern in patterns:
        if not pattern.startswith("@"):
            yield pattern
        elif pattern[1:] in sets:
            yield from _expand(name, sets[pattern[1:]], sets)
        else:
            raise ValueError(f"{name} names the set {pattern}, which groups.toml does not have")


def _is_below(pattern: str, path: str) -> bool:
    return path == pattern or path.startswith(f"{pattern}/") or ("*" in pattern and fnmatch.fnmatch(path, pattern))
