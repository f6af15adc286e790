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
        if any((folder / file).is_file() for file in files):
            return folder.resolve()
    places = " or ".join(map(str, dict.fromkeys(folders)))
    raise ConfigError(f"{setting} = {name!r}: there is no {' or '.join(files)} in {places}")


def find_runs(setting: str, names: Iterable[str], savedir: Path, files: tuple[str, ...]) -> list[Path]:
    """The folder of each name, as find_run has it; a name with *, ? or [ stands for all runs in savedir that it matches
    and that hold one of the files. Each run once. ConfigError when a name stands for none.
    """
    savedir = savedir.expanduser()
    there = sorted(savedir.iterdir()) if savedir.is_dir() else []
    found: list[Path] = []
    for name in names:
        matching = [folder for folder in there if set(name) & set("*?[") and fnmatch.fnmatchcase(folder.name, name)]
        runs = [folder.resolve() for folder in matching if any((folder / file).is_file() for file in files)]
        found += runs or [find_run(setting, name, savedir, files)]
    return list(dict.fromkeys(found))


def read_meta(folder: Path) -> dict[str, Any]:
    """folder/meta.json; empty where there is none that can be read."""
    try:
        content = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
