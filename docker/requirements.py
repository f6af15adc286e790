"""Prints what a distribution needs, KubeBeast's own included: `requirements.py 'services/learner[fleet,gpu]'`.

Without --own it prints the packages from elsewhere, with --own the folders of KubeBeast's. An image installs the former
in a layer of its own, below the one of KubeBeast's code: that layer stays as it is when only the code changes, and is
neither built nor pushed nor pulled again.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

FOLDERS = {
    "common": "services/common",
    "envserver": "services/envserver",
    "native": "native",
    "protos": "protos",
}
"""Of the distributions that others need, by their names after "kubebeast-"."""


def requirements(target: str) -> Iterator[str]:
    """Of one distribution, "folder" or "folder[extra,extra]", itself first; KubeBeast's own as "./folder".

    KeyError for an extra that a distribution does not have.
    """
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


if __name__ == "__main__":
    own, targets = "--own" in sys.argv, [word for word in sys.argv[1:] if word != "--own"]
    lines = {line for target in targets for line in requirements(target) if line.startswith("./") == own}
    print("\n".join(sorted(lines)))
