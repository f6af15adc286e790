"""The locks agree with the requirements in pyproject files and locks/*.in, and with one another."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from locks.inputs import EVERYTHING, INPUTS, OF_THEIR_OWN, VERSIONS
from locks.requirements import from_elsewhere
from tests.unit.repository.documents import ROOT

DISTRIBUTIONS = sorted(
    path.parent for path in [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml")]
)


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes to the root, to which the folders of distributions are relative."""
    monkeypatch.chdir(ROOT)


def versions(lock: str) -> dict[str, set[str]]:
    """Returns the versions of every package of a lock: several if they depend on the Python version."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def test_every_lock_is_made_by_the_script() -> None:
    assert set(INPUTS) == {f"locks/{path.name}" for path in (ROOT / "locks").glob("*.txt")}


@pytest.mark.parametrize(("lock", "targets"), [(VERSIONS, EVERYTHING), *INPUTS.items()])
def test_a_lock_has_a_version_that_fits_every_requirement(lock: str, targets: tuple[str, ...]) -> None:
    locked = versions(lock)
    wanted = [Requirement(line) for line in from_elsewhere(targets)]

    assert wanted
    unfit = [
        str(requirement)
        for requirement in wanted
        if not any(map(requirement.specifier.contains, locked.get(canonicalize_name(requirement.name), ())))
    ]
    assert unfit == [], "run scripts/lock"


@pytest.mark.parametrize("lock", INPUTS)
def test_every_package_of_a_lock_has_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line for line in text.splitlines() if "==" in line]

    assert entries
    assert [line.split()[0] for line in entries if "--hash=sha256:" not in line] == []


@pytest.mark.parametrize("lock", sorted(set(INPUTS) - OF_THEIR_OWN))
def test_a_package_has_the_same_version_everywhere(lock: str) -> None:
    common = versions(VERSIONS)

    assert {name: found for name, found in versions(lock).items() if not found <= common[name]} == {}


def test_what_distributions_are_built_with_is_locked() -> None:
    assert len(DISTRIBUTIONS) >= 5
    locked = versions("locks/build.txt")
    for folder in DISTRIBUTIONS:
        pyproject = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        for requirement in map(Requirement, pyproject["build-system"]["requires"]):
            (version,) = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{folder}: {requirement}"


def test_no_extra_of_a_distribution_is_left_out() -> None:
    for folder in ("services/learner", "services/envserver"):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        asked = {target for targets in INPUTS.values() for target in targets if target.startswith(folder)}
        named = {extra for target in asked for extra in re.findall(r"[\w-]+", target.partition("[")[2])}
        assert set(project["optional-dependencies"]) == named
