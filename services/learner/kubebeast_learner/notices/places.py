"""Notices that others write: files, and URLs."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from kubebeast_learner.notices.notice import MAX_BYTES, Notice, NoticeError
from kubebeast_learner.notices.request import request


class FileNotices:
    """A file, which is a notice as long as it exists and is not empty; other content is another notice."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def poll(self) -> Sequence[Notice]:
        try:
            if not self._path.exists():
                return []
            if not self._path.is_file():  # a FIFO would block
                raise NoticeError(f"{self._path}: it is no regular file")
            with open(self._path, "rb") as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise NoticeError(f"{self._path}: {error.strerror or error}") from error
        if len(content) > MAX_BYTES:
            raise NoticeError(f"{self._path}: it is larger than {MAX_BYTES >> 10} KiB")
        key = hashlib.sha256(content).hexdigest()
        return [Notice(key, f"{self._path} has {len(content)} bytes")] if content else []


class UrlNotices:
    """A URL, which is a notice as long as it responds with 200 and a body that is not empty; its content is not read.

    404, 204 and 200 without a body are no notice. Any other response is an error, also a redirect.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def poll(self) -> Sequence[Notice]:
        response = request(self._url)
        if response.status not in (200, 204, 404):
            raise NoticeError(f"GET {self._url}: HTTP {response.status}")
        is_notice = response.status == 200 and response.body
        return [Notice(self._url, f"{self._url} responds with {len(response.body)} bytes")] if is_notice else []
