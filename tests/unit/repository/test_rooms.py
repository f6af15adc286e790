"""Packages import one way: from a room on the right of its distribution's order to those on its left, never back.

Tests and benchmarks import nothing of each other, what starts learners for both imports neither.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = {
    "kubebeast_common": ROOT / "services" / "common" / "kubebeast_common",
    "kubebeast_conformance": ROOT / "services" / "conformance" / "kubebeast_conformance",
    "kubebeast_envserver": ROOT / "services" / "envserver" / "kubebeast_envserver",
    "kubebeast_fleet": ROOT / "services" / "fleet" / "kubebeast_fleet",
    "kubebeast_learner": ROOT / "services" / "learner" / "kubebeast_learner",
}
ORDER = {
    "kubebeast_conformance": "rules contract wire check keepalive process env_server learner report __main__",
    "kubebeast_envserver": "rows faults config catch envs stream process metrics __main__",
    "kubebeast_fleet": "errors options spaces fleet exchange metrics playing vector_env async_vector_env",
    "kubebeast_learner": (
        "spec config machine profiling ranks distributions models algorithm run actors training play observe tune "
        "commands cli __main__"
    ),
}
"""Packages and modules of each distribution; each may import those before it."""
FOREIGN = {
    "kubebeast_common": set[str](),
    "kubebeast_conformance": {"kubebeast_common"},
    "kubebeast_envserver": {"kubebeast_common"},
    "kubebeast_fleet": {"kubebeast_common"},
    "kubebeast_learner": {"kubebeast_common", "kubebeast_envserver"},
}
"""Distributions that each may import."""
ENVIRONMENTS = ("actors.mono", "play", "tune", "cli")
"""Rooms of the learner that make environments; all others do without the env-server's package."""
TREES = {"benchmarks": {"harness"}, "harness": set[str](), "tests": {"harness"}}
"""What is no distribution, and which of the others each may name."""
MODULE = re.compile(rf"(?<![\w./])(?:{'|'.join(TREES)})(?:\.\w+)+")
MAX_FILES = 15
CORE = ROOT / "native" / "src" / "core"
CORE_ORDER = "sync calls tensors wire stats rollouts inference access stream transport pool testing"


def modules(package: str) -> Iterator[tuple[str, Path]]:
    """Dotted name below the package, and file."""
    for path in SOURCES[package].rglob("*.py"):
        name = ".".join(path.relative_to(SOURCES[package]).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if name:
            yield name, path


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def imported_names(path: Path) -> Iterator[str]:
    """Dotted name of everything that a file imports, at its top or later."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Distribution and dotted name below it of everything that a file imports of ours."""
    for name in imported_names(path):
        distribution, _, rest = name.partition(".")
        if distribution in SOURCES:
            yield distribution, rest


def modules_in_strings(path: Path) -> Iterator[str]:
    """Dotted names of what is no distribution, as ids of environments and the words of `python -m` have them."""
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from MODULE.findall(node.value)


@pytest.mark.parametrize("package", sorted(ORDER))
def test_rooms_import_one_way(package: str) -> None:
    order = ORDER[package].split()
    places = {room: place for place, room in enumerate(order)}
    found = {name.split(".")[0] for name, _ in modules(package)}
    assert found == set(order)

    backwards = [
        f"{name} imports {target}"
        for name, path in modules(package)
        for distribution, target in imported(path)
        if distribution == package and places.get(target.split(".")[0], -1) > places[name.split(".")[0]]
    ]
    assert backwards == []


@pytest.mark.parametrize("package", sorted(FOREIGN))
def test_distributions_import_one_way(package: str) -> None:
    foreign = {distribution for _, path in modules(package) for distribution, _ in imported(path)} - {package}

    assert foreign == FOREIGN[package]


def test_only_what_makes_environments_imports_the_env_server() -> None:
    rooms = {
        name
        for name, path in modules("kubebeast_learner")
        for distribution, _ in imported(path)
        if distribution == "kubebeast_envserver"
    }

    assert [name for name in sorted(rooms) if not name.startswith(ENVIRONMENTS)] == []


@pytest.mark.parametrize("tree", sorted(TREES))
def test_tests_and_benchmarks_name_nothing_of_each_other(tree: str) -> None:
    others = set(TREES) - {tree} - TREES[tree]
    paths = sorted((ROOT / tree).rglob("*.py"))

    assert paths
    foreign = [
        f"{path.relative_to(ROOT)} names {name}"
        for path in paths
        if any(other in path.read_text(encoding="utf-8") for other in others)  # reading is faster than parsing
        for name in [*imported_names(path), *modules_in_strings(path)]
        if name.split(".")[0] in others
    ]
    assert foreign == []


def test_rooms_of_the_core_include_one_way() -> None:
    order = CORE_ORDER.split()
    assert {path.name for path in CORE.iterdir()} == set(order)
    backwards = [
        f"{path.relative_to(CORE)} includes {line}"
        for path in CORE.rglob("*.*")
        if not path.stem.endswith("_test")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith('#include "')
        for room in [line.split('"')[1].split("/")[0]]
        if room in order and order.index(room) > order.index(path.parent.name)
    ]

    assert backwards == []


def test_no_room_is_crowded() -> None:
    folders = [
        folder for source in [*SOURCES.values(), CORE, ROOT / "harness"] for folder in [source, *source.rglob("*/")]
    ]
    counts = {
        str(folder.relative_to(ROOT)): sum(
            path.is_file() and not path.stem.endswith("_test") and path.suffix != ".pyc" for path in folder.iterdir()
        )
        for folder in folders
    }

    assert {name: count for name, count in counts.items() if count > MAX_FILES} == {}
