"""Objects of a bucket, with OSErrors for whatever a store answers."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from kubebeast_common.settings import ConfigError

try:
    import obstore
    from obstore import exceptions
    from obstore.store import MemoryStore, ObjectStore, from_url
except ImportError as missing:
    raise ConfigError("savedir: a bucket needs obstore: pip install 'kubebeast-runs[bucket]'") from missing

if TYPE_CHECKING:  # these types exist for checkers only
    from obstore import PutMode
    from obstore.store import ClientConfig, RetryConfig

RETRIES: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
CLIENT: "ClientConfig" = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
"""timeout: of one request, with at most _PART_BYTES. allow_http: only an endpoint of the user's own has no TLS."""
_PART_BYTES = 8 << 20
_memory: dict[str, MemoryStore] = {}
_lock = threading.Lock()


class ConflictError(OSError):
    """Another version of an object is there than the one that was to be replaced."""


class Object(NamedTuple):
    content: bytes
    version: str
    """Entity tag."""


class Bucket:
    """Objects below a URL by their keys. Thread-safe.

    All methods block for as long as RETRIES allow, and may raise OSError: FileNotFoundError for a key without an
    object, PermissionError for credentials that do not suffice.
    """

    def __init__(self, url: str) -> None:
        """Raises ConfigError if there is no such kind of store, or if its settings in the environment are wrong."""
        self.url = url.rstrip("/")
        try:
            self._store = _open(self.url)
        except (ValueError, exceptions.BaseError) as error:
            raise ConfigError(f"savedir = {url!r}: {_first_line(error)}") from error

    def place(self, key: str) -> str:
        """Returns the URL of an object, for messages."""
        return f"{self.url}/{key}"

    def read(self, key: str) -> Object:
        """Returns an object of a few kilobytes."""
        with self._translated(key):
            found = obstore.get(self._store, key)
            return Object(bytes(found.bytes()), found.meta["e_tag"] or "")

    def replace(self, key: str, content: bytes, version: str | None) -> str:
        """Writes an object if its present version is `version`, None for no object, and returns the new version.

        Raises ConflictError if there is another version, also if that is of a lost answer to this very call.
        """
        with self._translated(key):
            mode: PutMode = "create" if version is None else {"e_tag": version}
            return obstore.put(self._store, key, content, mode=mode, use_multipart=False)["e_tag"] or ""

    def write(self, key: str, content: bytes | Path) -> None:
        """Writes an object, or the content of a file as one."""
        with self._translated(key):
            obstore.put(self._store, key, content, chunk_size=_PART_BYTES, max_concurrency=2)

    def download(self, key: str, file: IO[bytes]) -> None:
        """Appends the content of an object to a file."""
        with self._translated(key):
            for chunk in obstore.get(self._store, key).stream(min_chunk_size=1 << 20):
                file.write(chunk)

    def keys(self, prefix: str) -> list[str]:
        """Returns all keys that begin with `prefix` and a slash."""
        with self._translated(prefix):
            return [found["path"] for page in obstore.list(self._store, prefix) for found in page]

    def folders(self) -> list[str]:
        """Returns the parts of keys before their first slash, without duplicates."""
        with self._translated(""):
            return sorted(obstore.list_with_delimiter(self._store)["common_prefixes"])

    def names(self, folder: str) -> list[str]:
        """Returns the last parts of the keys that begin with `folder` and a slash and have no further slash."""
        with self._translated(folder):
            found = obstore.list_with_delimiter(self._store, folder)["objects"]
            return sorted(each["path"].rpartition("/")[2] for each in found)

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes objects, as far as there are any."""
        listed = list(keys)
        with self._translated(listed[0] if listed else ""), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, listed)

    @contextlib.contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{self.place(key)}: there is no such object") from error
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise ConflictError(f"{self.place(key)}: another process has written it") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise PermissionError(f"{self.place(key)}: {_first_line(error)}") from error
        except exceptions.BaseError as error:
            raise OSError(f"{self.place(key)}: {_first_line(error)}") from error


def _open(url: str) -> ObjectStore:
    parts = urlsplit(url)
    if parts.scheme == "memory":
        with _lock:
            return _memory.setdefault(url, MemoryStore())
    if not parts.netloc:
        raise ValueError("it names no bucket")
    return from_url(url, client_options=CLIENT, retry_config=RETRIES)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
