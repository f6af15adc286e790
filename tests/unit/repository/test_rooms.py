"""Packages import in one direction: in the order of its distribution, each imports only those before it.

Tests and benchmarks do not import each other; the harness, which starts learners for both, imports neither.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = {
    "kubebeast_broker": ROOT / "services" / "broker" / "kubebeast_broker",
    "kubebeast_common": ROOT / "services" / "common" / "kubebeast_common",
    "kubebeast_conformance": ROOT / "services" / "conformance" / "kubebeast_conformance",
    "kubebeast_envserver": ROOT / "services" / "envserver" / "kubebeast_envserver",
    "kubebeast_fleet": ROOT / "services" / "fleet" / "kubebeast_fleet",
    "kubebeast_learner": ROOT / "services" / "learner" / "kubebeast_learner",
    "kubebeast_observe": ROOT / "services" / "observe" / "kubebeast_observe",
    "kubebeast_runs": ROOT / "services" / "runs" / "kubebeast_runs",
    "kubebeast_sweep": ROOT / "services" / "sweep" / "kubebeast_sweep",
}
ORDER = {
    "kubebeast_broker": (
        "settings assignment peer messages mailbox broker service server view metrics command commands"
    ),
    "kubebeast_conformance": "chapters rules contract wire check keepalive process env_server learner report __main__",
    "kubebeast_envserver": "rows faults options config catch envs stream trial process metrics __main__",
    "kubebeast_fleet": "errors options fleet exchange metrics playing vector_env async_vector_env",
    "kubebeast_learner": (
        "errors config machine profiling ranks notices curriculum distributions models algorithm league run recording "
        "actors training metrics play publish tune commands __main__"
    ),
    "kubebeast_observe": "settings numbers table arrays errors scrape fleet top plot report commands",
    "kubebeast_runs": (
        "files storage names parts resuming log_table scores lock checkpoints weights bucket folder home best trackers "
        "log rank_log score_log"
    ),
    "kubebeast_sweep": (
        "settings grouping space draws plan scores training_run processes jobs population trials active_trial "
        "sweep results command commands"
    ),
}
"""Packages and modules of each distribution; each may import those before it."""
FOREIGN = {
    "kubebeast_broker": {"kubebeast_common"},
    "kubebeast_common": set[str](),
    "kubebeast_conformance": {"kubebeast_common"},
    "kubebeast_envserver": {"kubebeast_common"},
    "kubebeast_fleet": {"kubebeast_common"},
    "kubebeast_learner": {"kubebeast_common", "kubebeast_envserver", "kubebeast_observe", "kubebeast_runs"},
    "kubebeast_observe": {"kubebeast_common", "kubebeast_runs"},
    "kubebeast_runs": {"kubebeast_common"},
    "kubebeast_sweep": {"kubebeast_common", "kubebeast_observe", "kubebeast_runs"},
}
"""Other distributions that each one may import."""
ENVIRONMENTS = ("actors.mono", "play", "tune")
"""Packages of the learner that make environments; all others work without the env-server's package."""
TREES = {"benchmarks": {"harness"}, "harness": set[str](), "tests": {"harness"}}
"""Folders that are not distributions, each with the other folders that it may import."""
MODULE = re.compile(rf"(?<![\w./])(?:{'|'.join(TREES)})(?:\.\w+)+")
MAX_FILES = 15
CORE = ROOT / "native" / "src" / "core"
CORE_ORDER = "sync queues calls tensors wire stats options rollouts inference access door stream transport pool testing"


def modules(package: str) -> Iterator[tuple[str, Path]]:
    """Yields the dotted name below the package and the file of each module."""
    for path in SOURCES[package].rglob("*.py"):
        name = ".".join(path.relative_to(SOURCES[package]).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if name:
            yield name, path


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def imported_names(path: Path) -> Iterator[str]:
    """Yields the dotted name of each import of a file, at its top or later."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yields distribution and dotted name below it for each import of this repository's code."""
    for name in imported_names(path):
        distribution, _, rest = name.partition(".")
        if distribution in SOURCES:
            yield distribution, rest


def modules_in_strings(path: Path) -> Iterator[str]:
    """Yields dotted names of modules outside of distributions in strings: ids of environments, words of `python -m`."""
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


@pytest.mark.parametrize(
    ("optional", "rooms"), [("kubebeast_envserver", ENVIRONMENTS), ("kubebeast_observe", ("publish",))]
)
def test_only_what_needs_an_optional_distribution_imports_it(optional: str, rooms: tuple[str, ...]) -> None:
    found = {
        name
        for name, path in modules("kubebeast_learner")
        for distribution, _ in imported(path)
        if distribution == optional
    }

    assert found
    assert [name for name in sorted(found) if not name.startswith(rooms)] == []


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
