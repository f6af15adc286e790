"""A run in a bucket that this process writes: its lease, its files on this machine and their uploads."""

import logging
import tempfile
import threading
from pathlib import Path
from typing import Self

from kubebeast_runs.bucket.log_uploads import LogUploads
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.periodic import Periodic
from kubebeast_runs.bucket.pointer import LEASE_S, give_back, manifest_key, take_lease
from kubebeast_runs.bucket.storage import BucketStorage
from kubebeast_runs.checkpoints import step_of
from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.names import CHECKPOINTS, LATEST
from kubebeast_runs.parts import TRAINING, Part
from kubebeast_runs.weights import NAME as WEIGHTS

logger = logging.getLogger(__name__)

RENEWAL_S = LEASE_S / 3
UPLOAD_S = 15.0
RETRY_S = 5.0
LEASE, UPLOADS = "lease", "uploads"
"""Names among the failed writes of a run."""


class OwnedRun:
    """The part of a run in a bucket that this process writes. Logs and tables are written into a folder of this machine
    and uploaded every UPLOAD_S; checkpoints go to `storage`.

    A context manager: its exit uploads the last changes and gives the lease back. If they cannot be uploaded, it tries
    again until `stop` is set, and then raises OSError.
    """

    def __init__(self, url: str, xpid: str, stop: threading.Event, part: Part = TRAINING) -> None:
        """Takes the lease, and downloads the files that the process goes on with, without those for TensorBoard.

        Blocks up to pointer.LEASE_S if a process that may have died holds the lease.

        Raises:
            BusyError: If another process holds it.
            ConfigError: If the URL or the store cannot be used.
            InterruptedError: If `stop` was set meanwhile.
            OSError: If the store cannot be reached.
        """
        self._bucket, self._xpid, self._stop, self._part = Bucket(url), xpid, stop, part
        self._pointer = take_lease(self._bucket, xpid, part, stop.wait)
        self.storage = BucketStorage(self._bucket, xpid, self._pointer, part)
        """The checkpoints of the run."""
        self._temporary = tempfile.TemporaryDirectory(prefix="kubebeast-", ignore_cleanup_errors=True)
        self.savedir = Path(self._temporary.name)
        """Folder of this machine that holds that of the run, for logs; it vanishes with the process."""
        self._folder = self.savedir / xpid
        self._folder.mkdir()
        try:
            self.storage.delete_unnamed()
            self.storage.fetch(self._folder, _is_continued)
        except BaseException:
            self._temporary.cleanup()
            self._release()
            raise
        self._uploads = LogUploads(self._folder, self.storage)
        self._latest = b""
        self._renewing: Periodic | None = None
        self._uploading: Periodic | None = None

    @property
    def place(self) -> str:
        """URL of the run."""
        return self.storage.place("")

    def require(self) -> None:
        """Raises LeaseLostError if another process has taken over the run."""
        self._pointer.require()

    def begin(self, failures: WriteFailures) -> None:
        """Starts to renew the lease and to upload; `failures` counts what fails."""
        self._renewing = Periodic(LEASE, RENEWAL_S, self._pointer.renew, failures)
        self._uploading = Periodic(UPLOADS, UPLOAD_S, self._upload, failures)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *error: object) -> None:
        try:
            if self._uploading is not None:
                self._uploading.stop()
            self._upload_last()
        except (OSError, RuntimeError) as another:
            if error_type is None:
                raise
            logger.error("the last logs of %s are not in the bucket: %s", self.place, another)
        finally:
            self._temporary.cleanup()
            if self._renewing is not None:  # until here: the last attempts may take longer than the lease
                self._renewing.stop()
            self._release()

    def _release(self) -> None:
        """Gives the lease back; of a run without files nothing is left."""
        try:
            if self.storage.manifest().files:
                give_back(self._pointer)
            else:
                self._pointer.renew()
                self._bucket.delete([manifest_key(self._xpid, self._part)])
        except (OSError, LeaseLostError) as error:
            logger.warning("%s: the lease is not given back: %s; the next process waits for its end", self.place, error)

    def _upload_last(self) -> None:
        while True:
            try:
                self._upload()
                self.storage.delete_replaced()
                return
            except OSError as error:
                if self._stop.is_set():
                    raise
                logger.warning("%s: the last logs are not uploaded: %s; SIGTERM ends the attempts", self.place, error)
            self._stop.wait(RETRY_S)

    def _upload(self) -> None:
        """Uploads the logs of a run that has begun."""
        if not (self._folder / self._part.first_file).is_file() and not self.storage.manifest().files:
            return
        self._uploads.sync()
        latest = self.savedir / LATEST
        content = latest.read_bytes() if latest.is_file() else b""
        if content != self._latest:
            self._pointer.confirm()
            self._bucket.write(LATEST, content)
            self._latest = content


def _is_continued(name: str) -> bool:
    is_checkpoint = step_of(name) is not None or name in (WEIGHTS, CHECKPOINTS)
    return not (is_checkpoint or name.startswith("tensorboard/"))
