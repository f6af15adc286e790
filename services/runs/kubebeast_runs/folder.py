"""Lookup of a run's folder by name or path, and of the content of its meta.json."""

import fnmatch
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubebeast_common.access.places import is_url, local
from kubebeast_common.settings import ConfigError
from kubebeast_runs.names import LATEST, META
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Files


def place_of(savedir: str, xpid: str) -> str:
    """Returns the path or URL of a run, for messages."""
    return f"{savedir.rstrip('/')}/{xpid}" if is_url(savedir) else str(local(savedir) / xpid)


def folder_of(savedir: str, xpid: str, *, with_checkpoints: bool = True) -> Path:
    """Returns the folder of a run, which may not exist. If LATEST is a link, as TorchBeast's, it is returned as is.

    A run in a bucket is downloaded into a temporary folder. Raises ConfigError and OSError if that fails.
    """
    if is_url(savedir):
        from kubebeast_runs.bucket.copies import copy_run, name_of_run  # their package is optional

        return copy_run(savedir, name_of_run(savedir, xpid) or xpid, with_checkpoints=with_checkpoints)
    path = local(savedir) / xpid
    if xpid != LATEST or not path.is_file():
        return path
    try:
        name = path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return path
    return path if "/" in name or name in ("", ".", "..", LATEST) else path.with_name(name)


def existing_run(savedir: str, xpid: str) -> str | None:
    """Returns the name of a run that exists, also of the LATEST one; else None. Raises ConfigError and OSError."""
    if not is_url(savedir):
        folder = folder_of(savedir, xpid)
        return folder.resolve().name if folder.is_dir() else None
    from kubebeast_runs.bucket.copies import name_of_run
    from kubebeast_runs.bucket.objects import Bucket

    name = name_of_run(savedir, xpid)
    return name if name is not None and name in Bucket(savedir).folders() else None


def find_run(setting: str, name: str, savedir: str, files: tuple[str, ...], *, with_checkpoints: bool = False) -> Path:
    """Returns the resolved folder `name`, or that of the run with this name under savedir.

    Args:
        setting: The setting that names the run, for the error.
        name: A path, a URL or the name of a run.
        savedir: The folder of all runs, or its URL.
        files: Files of which the folder must have at least one.
        with_checkpoints: If set, the checkpoints of a run in a bucket are downloaded, too.

    Raises:
        ConfigError: If neither folder has one of the files, or if a bucket cannot be read.
    """
    if is_url(name):
        savedir, _, name = name.rstrip("/").rpartition("/")
    try:
        folders = (Path(name).expanduser(), folder_of(savedir, name, with_checkpoints=with_checkpoints))
    except OSError as error:
        raise ConfigError(f"{setting} = {name!r}: {savedir} cannot be read: {error}") from error
    for folder in folders:
        if _holds_one(folder, files):
            return folder.resolve()
    places = " or ".join(dict.fromkeys((str(folders[0]), place_of(savedir, name))))
    raise ConfigError(f"{setting} = {name!r}: there is no {' or '.join(files)} in {places}")


def find_runs(setting: str, names: Iterable[str], savedir: str, files: tuple[str, ...]) -> list[Path]:
    """Returns the folder of each name, as find_run does, without duplicates.

    A name with *, ? or [ stands for all runs in savedir that it matches and that have one of the files. Raises
    ConfigError if there is no run for a name.
    """
    found: list[Path] = []
    for name in names:
        found += _matching(setting, name, savedir, files) or [find_run(setting, name, savedir, files)]
    return list(dict.fromkeys(found))


def _matching(setting: str, pattern: str, savedir: str, files: tuple[str, ...]) -> list[Path]:
    """Returns the matching folders, sorted by name; none for a name without *, ? and [."""
    if not set(pattern) & set("*?["):
        return []
    if is_url(savedir):
        from kubebeast_runs.bucket.copies import copy_run, matching_runs

        try:
            names = matching_runs(savedir, pattern)
            folders = [copy_run(savedir, name, with_checkpoints=False) for name in names]
        except OSError as error:
            raise ConfigError(f"{setting} = {pattern!r}: {savedir} cannot be read: {error}") from error
    elif local(savedir).is_dir():
        folders = sorted(each for each in local(savedir).iterdir() if fnmatch.fnmatchcase(each.name, pattern))
    else:
        folders = []
    return [folder.resolve() for folder in folders if _holds_one(folder, files)]


def _holds_one(folder: Path, files: tuple[str, ...]) -> bool:
    return any((folder / file).is_file() for file in files)


def read_meta(folder: Path) -> dict[str, Any]:
    """Returns the content of folder/meta.json; empty if it is missing or cannot be read."""
    return meta_of(LocalStorage(folder))


def meta_of(files: Files) -> dict[str, Any]:
    """Returns the content of a run's meta.json; empty if it is missing or cannot be read."""
    try:
        with files.open(META) as file:
            content = json.loads(file.read() or b"")
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
