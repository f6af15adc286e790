"""A run's folder as others find it: by its name or its path, with what its meta.json says."""

import json
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


def read_meta(folder: Path) -> dict[str, Any]:
    """folder/meta.json; empty where there is none that can be read."""
    try:
        content = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
