"""The S3 server of tests needs nothing from the environment."""

import pytest

from harness.processes.s3_server import serve_s3


def test_a_profile_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with serve_s3() as server, pytest.raises(FileNotFoundError):
        server.content("missing")
