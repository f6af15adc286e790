"""A run's folder as others find it: by its name or its path, with what its meta.json says."""

import fnmatch
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubebeast_learner.config import ConfigError


def find_run(setting: str, name: str, savedir: Path, files: tuple[str, ...]) -> Path:
    """The folder `name`, or the run of that name under savedir. ConfigError when neither holds one of the files.

    setting: the one that names the run.
    """
    folders = (Path(name).expanduser(), savedir.expanduser() / name)
    for folder in folders:
        if _holds_one(folder, files):
            return folder.resolve()
    places = " or ".join(map(str, dict.fromkeys(folders)))
    raise ConfigError(f"{setting} = {name!r}: there is no {' or '.join(files)} in {places}")


def find_runs(setting: str, names: Iterable[str], savedir: Path, files: tuple[str, ...]) -> list[Path]:
    """The folder of each name, as find_run has it; a name with *, ? or [ stands for all runs in savedir that it matches
    and that hold one of the files. Each run once. ConfigError when a name stands for none.
    """
    found: list[Path] = []
    for name in names:
        found += _matching(name, savedir.expanduser(), files) or [find_run(setting, name, savedir, files)]
    return list(dict.fromkeys(found))


def _matching(pattern: str, savedir: Path, files: tuple[str, ...]) -> list[Path]:
    """In the order of their names; none for a name without *, ? and [."""
    if not set(pattern) & set("*?[") or not savedir.is_dir():
        return []
    folders = sorted(folder for folder in savedir.iterdir() if fnmatch.fnmatchcase(folder.name, pattern))
    return [folder.resolve() for folder in folders if _holds_one(folder, files)]


def _holds_one(folder: Path, files: tuple[str, ...]) -> bool:
    return any((folder / file).is_file() for file in files)


def read_meta(folder: Path) -> dict[str, Any]:
    """folder/meta.json; empty where there is none that can be read."""
    try:
        content = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
