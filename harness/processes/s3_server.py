"""An S3 server as a process of this machine."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.store import S3Store

BUCKET = "bucket"
REGION = "us-east-1"
_PROGRAM = Path(sys.prefix) / "s3" / "bin" / "moto_server"
"""Installed by `make setup-dev`."""


@dataclass(frozen=True)
class S3Server:
    """A running server, or the proxy before it, as clients reach it."""

    port: int

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of its clients."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": REGION,
        }

    def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys of all objects below a prefix."""
        return [found["path"] for page in obstore.list(self._client(), prefix) for found in page]

    def content(self, key: str) -> bytes:
        return bytes(obstore.get(self._client(), key).bytes())

    def _client(self) -> S3Store:
        return S3Store(
            BUCKET,
            endpoint=f"http://127.0.0.1:{self.port}",
            access_key_id="key",
            secret_access_key="secret",
            region=REGION,
            client_options={"allow_http": True},
        )


@contextlib.contextmanager
def serve_s3() -> Iterator[S3Server]:
    """Runs a server with an empty bucket."""
    command = [str(_PROGRAM), "--host", "127.0.0.1", "--port", "0"]
    # With an AWS_PROFILE that its machine has not, it would answer every request with an error.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"Running on http://127\.0\.0\.1:(\d+)", line):
                    break
            assert found, "the server ended"
            threading.Thread(target=process.stdout.read, daemon=True).start()  # its log fills no pipe
            server = S3Server(int(found[1]))
            request = urllib.request.Request(f"http://127.0.0.1:{server.port}/{BUCKET}", method="PUT")
            urllib.request.urlopen(request).close()
            yield server
        finally:
            process.kill()
