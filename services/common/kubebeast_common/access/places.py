"""Places of files: paths, and URLs of buckets, which need no client of a store here."""

from pathlib import Path
from urllib.parse import urlsplit

from kubebeast_common.settings import ConfigError

SCHEMES = ("s3", "gs", "az", "memory")
"""Schemes of object stores; memory://NAME is one of this process, for tests."""
_FILE = "file://"
"""Beginning of a path that is written as a URL."""


def is_url(place: str) -> bool:
    """Returns True for the URL of a bucket, and False for a path."""
    return "://" in place and urlsplit(place).scheme in SCHEMES


def local(place: str) -> Path:
    """Returns the path of a place on this machine, with the home folder in place of ~."""
    return Path(place.removeprefix(_FILE)).expanduser()


def absolute(place: str) -> str:
    """Returns the absolute path of a place; a URL is returned as it is."""
    return place if is_url(place) else str(local(place).absolute())


def require_place(setting: str, place: str) -> None:
    """Raises ConfigError for a URL that is neither that of a bucket nor a path."""
    if "://" in place and not is_url(place) and not place.startswith(_FILE):
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ConfigError(f"{setting} = {place!r}: there is no such kind of store; choose a path or one of {known}")
    if is_url(place) and not urlsplit(place).netloc:
        raise ConfigError(f"{setting} = {place!r}: it names no bucket")
