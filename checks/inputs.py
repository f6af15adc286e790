"""Hash of a group's inputs: contents of files as git hashes them, versions of tools, the machine's system."""

import functools
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from checks.groups import Group, matches


class Tree:
    """The working tree: committed files, and those that `git add --all` would add.

    Args:
        root: Folder of a clone.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.files: Mapping[str, str] = self._read()
        """Mode and hash of every file by its path, as `git ls-tree` has them."""

    def is_clean(self) -> bool:
        """Returns True if the newest commit contains the whole tree."""
        return self._git("status", "--porcelain", "--untracked-files=all") == ""

    def commit(self) -> str:
        return self._git("rev-parse", "HEAD").strip()

    def digest(self, group: Group) -> str:
        """Returns a hash of everything on which the group's result depends."""
        parts = [group.name, group.command, *group.tests, *group.packages, *group.needs, *machine()]
        parts += [version(tool) for tool in group.tools]
        parts += [f"{line} {path}" for path, line in sorted(self.files.items()) if matches(group.inputs, path)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _read(self) -> Mapping[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            # A separate index leaves the user's staged changes alone.
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            self._git("read-tree", "HEAD", env=index)
            self._git("add", "--all", env=index)
            tree = self._git("write-tree", env=index).strip()
        lines = (line.partition("\t") for line in self._git("ls-tree", "-r", "-z", tree).split("\0") if line)
        return {path: line for line, _, path in lines}

    def _git(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(self._root), *words],
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@functools.cache
def machine() -> tuple[str, ...]:
    """Returns the operating system and the version of Python."""
    release = Path("/etc/os-release")
    return (platform.machine(), platform.system(), release.read_text() if release.exists() else "", sys.version)


@functools.cache
def version(tool: str) -> str:
    """Returns the exit status of a command and the version that it prints; the status shows if a program is missing."""
    done = subprocess.run(tool, shell=True, capture_output=True, text=True, check=False)
    return f"{tool}: {done.returncode} {done.stdout}"
