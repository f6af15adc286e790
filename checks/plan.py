"""Selection of the groups that a run needs, with the reasons for leaving out the others."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Literal

from checks.groups import Group
from checks.inputs import Tree
from checks.stamps import Stamp, Stamps


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The decision on one group."""

    group: Group
    digest: str
    stamp: Stamp | None = None
    """Earlier pass with these inputs; if there is one, the group is skipped."""
    missing: str = ""
    """Requirement that this machine lacks; empty if the group can run."""

    within: str = ""
    """Running group that includes this one."""

    @property
    def runs(self) -> bool:
        return not self.stamp and not self.missing and not self.within


Which = Literal["all", "make test"]


def make_plans(
    groups: Iterable[Group], tree: Tree, stamps: Stamps, env: Mapping[str, str], which: Which = "all"
) -> list[Plan]:
    """Returns a plan for each group, in order.

    Args:
        env: Variables; if CI_ALL is "1", stamps are ignored. CLUSTER_TOOL names a program that starts a cluster.
        which: "make test" leaves out groups that need more than compilers and Python.
    """
    plans = []
    for group in groups:
        if which == "make test" and not group.in_make_test:
            continue
        digest = tree.digest(group)
        spared = not group.always and env.get("CI_ALL") != "1"
        stamp = stamps.find(group.name, digest) if spared else None
        missing = "CLUSTER_TOOL" if group.cluster and not env.get("CLUSTER_TOOL") else ""
        plans.append(Plan(group=group, digest=digest, stamp=stamp, missing=missing))
    running = {plan.group.name for plan in plans if plan.runs}
    return [
        dataclasses.replace(plan, within=plan.group.part_of) if plan.runs and plan.group.part_of in running else plan
        for plan in plans
    ]
