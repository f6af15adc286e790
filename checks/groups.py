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
    """Patterns of the files it depends on: a path, a folder with its contents, or one with `*`. `!` excludes."""
    command: str = ""
    """Line of bash. If empty, the group consists of `tests`, which share one call of pytest with other groups."""
    tests: tuple[str, ...] = ()
    """Files and folders of tests. A file belongs to the group that names the longest path."""
    tools: tuple[str, ...] = ()
    """Commands that print the versions of programs and libraries outside the locks."""
    packages: tuple[str, ...] = ()
    """Commands that install system packages: once a run, before anything else, because they cannot run concurrently."""
    needs: tuple[str, ...] = ()
    """Commands that provide its other requirements, each once a run."""
    beside: bool = False
    """If set, its command runs beside all others, because it mostly waits for downloads and pods."""
    part_of: str = ""
    """Larger group that includes this one: if that group runs, this one is left out."""
    always: bool = False
    """If set, it runs in spite of a stamp."""
    nightly: bool = False
    """True for an expensive group: only the files that it is about are inputs, and the nightly run always runs it."""
    cluster: bool = False
    """True if it needs the program that CLUSTER_TOOL names."""
    in_make_test: bool = False
    """True if `make test` runs it too, without the tests marked slow."""


def load(path: Path = TABLE) -> list[Group]:
    """Returns all groups in the order in which they run.

    Raises:
        ValueError: If a group has an unknown key or names a missing set.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    sets: dict[str, list[str]] = table["sets"]
    return [_group(name, row, sets) for name, row in table["groups"].items()]


def matches(patterns: Iterable[str], path: str) -> bool:
    """Returns True if the patterns include the file `path`, relative to the repository: the last match decides."""
    included = False
    for pattern in patterns:
        if _is_below(pattern.removeprefix("!"), path):
            included = not pattern.startswith("!")
    return included


def owner(groups: Sequence[Group], test: str) -> Group | None:
    """Returns the group of a test file."""
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
