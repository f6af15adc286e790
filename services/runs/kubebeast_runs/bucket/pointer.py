"""The manifest in the bucket: read by all, replaced by the holder of its lease alone."""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from kubebeast_common.settings import ConfigError
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.bucket.manifest import Manifest
from kubebeast_runs.bucket.objects import Bucket, ConflictError
from kubebeast_runs.lock import BusyError
from kubebeast_runs.parts import Part

LEASE_S = 30.0
"""Time without a change of the manifest after which its holder has lost the lease."""
_POLL_S = 1.0


def manifest_key(xpid: str, part: Part) -> str:
    """Returns the object of the manifest of a part of a run."""
    return f"{xpid}/{part.name}.json"


def read_manifest(bucket: Bucket, key: str) -> tuple[Manifest, str] | None:
    """Returns the manifest and its version; None if there is none. Raises OSError, also if it is damaged."""
    try:
        found = bucket.read(key)
    except FileNotFoundError:
        return None
    try:
        return Manifest.decode(found.content), found.version
    except ValueError as error:
        raise OSError(f"{bucket.place(key)}: {error}") from error


class Pointer:
    """The manifest of which this process holds the lease. Thread-safe."""

    def __init__(self, bucket: Bucket, key: str, manifest: Manifest, version: str) -> None:
        self._bucket, self._key = bucket, key
        self._manifest, self._version = manifest, version
        self._renewed_at = time.monotonic()
        """A time at which this process certainly held the lease."""
        self._lock = threading.Lock()
        self._lost = ""

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    def require(self) -> None:
        """Raises LeaseLostError if the lease was lost."""
        if self._lost:
            raise LeaseLostError(self._lost)

    def confirm(self) -> None:
        """Renews the lease if it may have ended. Raises as `change`."""
        self.require()
        if time.monotonic() - self._renewed_at >= LEASE_S:
            self.renew()

    def renew(self) -> None:
        """Renews the lease. Raises as `change`."""
        self.change(lambda manifest: manifest)

    def change(self, changed: Callable[[Manifest], Manifest]) -> Manifest:
        """Replaces the manifest by the result of `changed`, and returns the one of before.

        Raises LeaseLostError, and OSError if it is unknown whether it was replaced: the next change finds that out.
        """
        with self._lock:
            self.require()
            before, began_at = self._manifest, time.monotonic()
            after = replace(changed(before), beat=before.beat + 1)
            try:
                self._version = self._bucket.replace(self._key, after.encode(), self._version)
            except ConflictError:
                after = self._find(before, after)
            self._manifest, self._renewed_at = after, began_at
            return before

    def _find(self, before: Manifest, after: Manifest) -> Manifest:
        """Finds the reason of a conflict, and returns the manifest of this process that is in the bucket.

        The answer to a write may have been lost. Then it is in the bucket already, or the one of a failed change.
        """
        found = read_manifest(self._bucket, self._key)
        if found is None or (found[0].fence, found[0].owner) != (before.fence, before.owner):
            holder = found[0].holder if found is not None else "somebody who deleted it"
            self._lost = f"{self._bucket.place(self._key)} was taken over by {holder or 'another process'}"
            raise LeaseLostError(self._lost)
        self._version = found[1]
        if found[0] != after:
            self._version = self._bucket.replace(self._key, after.encode(), self._version)
        return after


def take_lease(bucket: Bucket, xpid: str, part: Part, sleep: Callable[[float], bool]) -> Pointer:
    """Takes the lease of a part of a run, whose manifest is created if there is none.

    Blocks up to LEASE_S if a process that may have died holds it.

    Args:
        bucket: The bucket of all runs.
        xpid: Name of the run.
        part: Part of the run that this process writes.
        sleep: Waits for some seconds, and returns True if the process was asked to stop.

    Raises:
        BusyError: If a living process holds it.
        ConfigError: If the store has no conditional writes.
        InterruptedError: If `sleep` returned True.
        OSError: If the store cannot be reached.
    """
    key = manifest_key(xpid, part)
    since, seen = time.monotonic(), read_manifest(bucket, key)
    while seen is not None and seen[0].owner:
        if sleep(_POLL_S):
            raise InterruptedError("stopped while another process holds the run")
        now = read_manifest(bucket, key)
        if now is not None and now[0].owner == seen[0].owner and now[0].beat != seen[0].beat:
            raise BusyError(part.refusal(xpid, now[0].holder))
        if now is None or now[0].owner != seen[0].owner:
            since = time.monotonic()
        seen = now
        if time.monotonic() - since >= LEASE_S:
            break
    before, version = seen if seen is not None else (Manifest(), None)
    taken = replace(
        before,
        fence=before.fence + 1,
        owner=secrets.token_hex(8),
        holder=f"process {os.getpid()} on {socket.gethostname()}",
        beat=before.beat + 1,
    )
    try:
        pointer = Pointer(bucket, key, taken, bucket.replace(key, taken.encode(), version))
    except ConflictError as error:
        raise BusyError(part.refusal(xpid, "another process")) from error
    _require_conditions(bucket, key, taken)
    return pointer


def give_back(pointer: Pointer) -> None:
    """Gives the lease back, so that the next process need not wait. Raises as `Pointer.change`."""
    pointer.change(lambda manifest: replace(manifest, owner="", holder=""))


def _require_conditions(bucket: Bucket, key: str, manifest: Manifest) -> None:
    """Raises ConfigError if the store replaces objects whatever their version."""
    try:
        bucket.replace(key, manifest.encode(), '"no such version"')
    except ConflictError:
        return
    raise ConfigError(
        f"savedir = {bucket.url!r}: this store ignores the conditions of writes (If-Match), so it cannot keep two "
        "learners from writing the same run; take one that has them, such as S3, GCS, Azure, MinIO or R2"
    )
