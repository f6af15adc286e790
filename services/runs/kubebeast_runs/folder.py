"""Lookup of a run's folder by name or path, and of the content of its meta.json."""

import fnmatch
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubebeast_common.settings import ConfigError

LATEST = "latest"
"""Alias of the run that began last: savedir has a file of this name that contains the run's name."""


def folder_of(savedir: Path, xpid: str) -> Path:
    """Returns the folder of a run, which may not exist. If LATEST is a link, as TorchBeast's, it is returned as is."""
    path = savedir.expanduser() / xpid
    if xpid != LATEST or not path.is_file():
        return path
    try:
        name = path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return path
    return path if "/" in name or name in ("", ".", "..", LATEST) else path.with_name(name)


def find_run(setting: str, name: str, savedir: Path, files: tuple[str, ...]) -> Path:
    """Returns the resolved folder `name`, or that of the run with this name under savedir.

    Args:
        setting: The setting that names the run, for the error.
        name: A path or the name of a run.
        savedir: The folder of all runs.
        files: Files of which the folder must have at least one.

    Raises:
        ConfigError: If neither folder has one of the files.
    """
    folders = (Path(name).expanduser(), folder_of(savedir, name))
    for folder in folders:
        if _holds_one(folder, files):
            return folder.resolve()
    places = " or ".join(map(str, dict.fromkeys(folders)))
    raise ConfigError(f"{setting} = {name!r}: there is no {' or '.join(files)} in {places}")


def find_runs(setting: str, names: Iterable[str], savedir: Path, files: tuple[str, ...]) -> list[Path]:
    """Returns the folder of each name, as find_run does, without duplicates.

    A name with *, ? or [ stands for all runs in savedir that it matches and that have one of the files. Raises
    ConfigError if there is no run for a name.
    """
    found: list[Path] = []
    for name in names:
        found += _matching(name, savedir.expanduser(), files) or [find_run(setting, name, savedir, files)]
    return list(dict.fromkeys(found))


def _matching(pattern: str, savedir: Path, files: tuple[str, ...]) -> list[Path]:
    """Returns the matching folders, sorted by name; none for a name without *, ? and [."""
    if not set(pattern) & set("*?[") or not savedir.is_dir():
        return []
    folders = sorted(folder for folder in savedir.iterdir() if fnmatch.fnmatchcase(folder.name, pattern))
    return [folder.resolve() for folder in folders if _holds_one(folder, files)]


def _holds_one(folder: Path, files: tuple[str, ...]) -> bool:
    return any((folder / file).is_file() for file in files)


def read_meta(folder: Path) -> dict[str, Any]:
    """Returns the content of folder/meta.json; empty if it is missing or cannot be read."""
    try:
        content = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
