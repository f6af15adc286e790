"""Which groups a run needs, and why it leaves out the others."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Literal

from checks.groups import Group
from checks.inputs import Tree
from checks.stamps import Stamp, Stamps


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is done with one group."""

    group: Group
    digest: str
    stamp: Stamp | None = None
    """An earlier pass with these inputs, which spares this one."""
    missing: str = ""
    """What it needs and this machine lacks; empty if it can run."""

    @property
    def runs(self) -> bool:
        return not self.stamp and not self.missing


Which = Literal["all", "make test"]


def make_plans(
    groups: Iterable[Group], tree: Tree, stamps: Stamps, env: Mapping[str, str], which: Which = "all"
) -> list[Plan]:
    """A plan for each group, in order.

    Args:
        env: if CI_ALL is "1", no stamp counts; KUBEBEAST_CLUSTER_TOOL names what starts a cluster.
        which: "make test" leaves out what needs more than compilers and Python.
    """
    plans = []
    for group in groups:
        if which == "make test" and not group.in_make_test:
            continue
        digest = tree.digest(group)
        spared = not group.always and env.get("CI_ALL") != "1"
        stamp = stamps.find(group.name, digest) if spared else None
        missing = "KUBEBEAST_CLUSTER_TOOL" if group.cluster and not env.get("KUBEBEAST_CLUSTER_TOOL") else ""
        plans.append(Plan(group=group, digest=digest, stamp=stamp, missing=missing))
    return plans
