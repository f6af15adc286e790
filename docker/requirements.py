"""Prints what distributions need from elsewhere: `requirements.py protos 'services/envserver[atari]'`.

An image installs it in a layer of its own, below the one of KubeBeast's code: that layer stays as it is when only the
code changes, and is neither built nor pushed nor pulled again.
"""

import re
import sys
import tomllib
from pathlib import Path


def requirements(target: str) -> list[str]:
    """Of one distribution, "folder" or "folder[extra,extra]"; KubeBeast's own are left out.

    KeyError for an extra that the distribution does not have.
    """
    folder, _, extras = target.rstrip("]").partition("[")
    project = tomllib.loads(Path(folder, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted: list[str] = list(project["dependencies"])
    for extra in filter(None, extras.split(",")):
        wanted += project["optional-dependencies"][extra]
    return [line for line in wanted if not re.match(r"kubebeast[-_.]", line)]


if __name__ == "__main__":
    print("\n".join(sorted({line for target in sys.argv[1:] for line in requirements(target)})))
