"""Selection of the groups that run."""

from pathlib import Path

import pytest

from checks.groups import Group
from checks.inputs import Tree
from checks.plan import make_plans
from checks.stamps import Stamps
from checks.tests.repositories import make_repository

CORE = Group(name="core", command="make core", inputs=("src",), in_make_test=True)
LINT = Group(name="lint", command="make lint", inputs=("src",), always=True)
FIRST = Group(name="first-install", command="make e2e", inputs=("src",), part_of="end-to-end")
E2E = Group(name="end-to-end", command="make e2e", inputs=("src",), cluster=True)
CLUSTER = {"CLUSTER_TOOL": "cluster"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "clone", {"src/a.cc": "1"})


@pytest.fixture
def stamps(clone: Path, tmp_path: Path) -> Stamps:
    """Stamps according to which everything has passed."""
    stamps = Stamps(tmp_path / "stamps")
    for group in (CORE, LINT, E2E):
        stamps.write(group.name, Tree(clone).digest(group), commit="c0", seconds=1.0)
    return stamps


def running(clone: Path, stamps: Stamps, env: dict[str, str]) -> list[str]:
    return [plan.group.name for plan in make_plans([CORE, LINT, E2E], Tree(clone), stamps, env) if plan.runs]


def test_what_has_passed_is_spared_unless_it_runs_always(clone: Path, stamps: Stamps) -> None:
    assert running(clone, stamps, CLUSTER) == ["lint"]


def test_a_changed_input_makes_its_groups_run(clone: Path, stamps: Stamps) -> None:
    (clone / "src" / "a.cc").write_text("2")

    assert running(clone, stamps, CLUSTER) == ["core", "lint", "end-to-end"]


def test_ci_all_ignores_stamps(clone: Path, stamps: Stamps) -> None:
    assert running(clone, stamps, {**CLUSTER, "CI_ALL": "1"}) == ["core", "lint", "end-to-end"]


def test_without_a_cluster_its_groups_are_left_out_with_the_reason(clone: Path, tmp_path: Path) -> None:
    plans = make_plans([CORE, LINT, E2E], Tree(clone), Stamps(tmp_path / "none"), {})

    assert [plan.group.name for plan in plans if plan.runs] == ["core", "lint"]
    assert plans[-1].missing == "CLUSTER_TOOL"


def test_a_group_is_left_out_if_the_group_that_it_is_part_of_runs(clone: Path, stamps: Stamps) -> None:
    _, part, whole = make_plans([CORE, FIRST, E2E], Tree(clone), stamps, {**CLUSTER, "CI_ALL": "1"})

    assert (part.runs, part.within, whole.runs) == (False, "end-to-end", True)


def test_a_part_runs_by_itself_if_the_whole_is_spared(clone: Path, stamps: Stamps) -> None:
    part, whole = make_plans([FIRST, E2E], Tree(clone), stamps, CLUSTER)

    assert (part.runs, part.within, whole.runs) == (True, "", False)


def test_make_test_has_its_own_groups_and_the_same_stamps(clone: Path, stamps: Stamps, tmp_path: Path) -> None:
    (spared,) = make_plans([CORE, LINT, E2E], Tree(clone), stamps, {}, "make test")
    (runs,) = make_plans([CORE, LINT, E2E], Tree(clone), Stamps(tmp_path / "none"), {}, "make test")

    assert (spared.group, spared.runs) == (CORE, False)
    assert runs.runs
