"""Prints what distributions need, KubeBeast's own included: `requirements.py 'services/learner[fleet,gpu]'`.

By default the packages from elsewhere, as the pyproject files say; with --lock FILE each with version and hashes
of that lock; with --own the folders of KubeBeast's. An image installs packages from elsewhere in a layer below that of
KubeBeast's code: it stays as it is when only the code changes, and is neither built nor pushed nor pulled again.
"""

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

FOLDERS = {
    "common": "services/common",
    "conformance": "services/conformance",
    "envserver": "services/envserver",
    "fleet": "services/fleet",
    "native": "native",
    "broker": "services/broker",
    "observe": "services/observe",
    "protos": "protos",
    "runs": "services/runs",
    "sweep": "services/sweep",
}
"""Of the distributions that others need, by their names after "kubebeast-"."""


def requirements(target: str) -> Iterator[str]:
    """Those of "file.in"; or of a distribution, "folder" or "folder[extra,extra]", itself first, as "./folder".

    KeyError for an extra that a distribution does not have.
    """
    if target.endswith(".in"):
        lines = Path(target).read_text(encoding="utf-8").splitlines()
        yield from (line for line in lines if line and not line.startswith("#"))
        return
    folder, _, extras = target.rstrip("]").partition("[")
    yield f"./{folder}"
    project = tomllib.loads(Path(folder, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted: list[str] = list(project["dependencies"])
    for extra in filter(None, extras.split(",")):
        wanted += project["optional-dependencies"][extra]
    for line in wanted:
        if own := re.match(r"kubebeast-(\w+)(\[[^]]*\])?", line):
            yield from requirements(FOLDERS[own[1]] + (own[2] or ""))
        else:
            yield line


def from_elsewhere(targets: list[str] | tuple[str, ...]) -> list[str]:
    """What these need that is not KubeBeast's, sorted."""
    return sorted({line for target in targets for line in requirements(target) if not line.startswith("./")})


def normalized(name: str) -> str:
    """A project's name as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: Path) -> dict[str, str]:
    """What stands behind the names of a lock, by normalized name: "==2.4.6 --hash=sha256:..."."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    entries = re.findall(r"^([A-Za-z0-9._-]+)(==.*)$", text, flags=re.MULTILINE)
    return {normalized(name): " ".join(rest.split()) for name, rest in entries}


def pinned(requirement: str, entries: dict[str, str]) -> str:
    """Such a requirement as the lock has it: "gymnasium[mujoco]>=1.1" is "gymnasium[mujoco]==1.4.0 --hash=...".

    KeyError where the lock does not have it.
    """
    name = re.match(r"([A-Za-z0-9._-]+)(\[[^]]*\])?", requirement)
    assert name is not None, requirement
    return name[0] + entries[normalized(name[1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--own", action="store_true", help="the folders of KubeBeast's distributions")
    kind.add_argument("--lock", type=Path, help="a lock with their versions and hashes")
    parser.add_argument("targets", nargs="*", help='"folder", "folder[extra,extra]" or "file.in"')
    options = parser.parse_args()
    lines = from_elsewhere(options.targets)
    if options.own:
        lines = sorted({line for target in options.targets for line in requirements(target) if line.startswith("./")})
    elif options.lock:
        entries = locked(options.lock)
        lines = [pinned(line, entries) for line in lines]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
