"""Files and URLs as notices."""

import os
from pathlib import Path

import pytest

from kubebeast_learner.notices.choice import CLOUDS, source_of
from kubebeast_learner.notices.notice import MAX_BYTES, NoticeError
from kubebeast_learner.notices.places import FileNotices, UrlNotices
from tests.unit.learner.notices.metadata_server import Reply, metadata_server


def test_a_file_is_a_notice_if_it_exists_and_is_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "notice"
    source = FileNotices(path)
    assert list(source.poll()) == []
    path.touch()
    assert list(source.poll()) == []
    path.write_text("soon")
    (notice,) = source.poll()
    assert notice.text == f"{path} has 4 bytes"
    os.utime(path, (0, 0))
    assert list(source.poll()) == [notice]
    path.write_text("late")
    (other,) = source.poll()
    assert other.key != notice.key


def test_something_that_is_no_small_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    for name, reason in (("pipe", "no regular file"), ("large", "larger than 64 KiB"), (".", "no regular file")):
        with pytest.raises(NoticeError, match=reason):
            FileNotices(tmp_path / name).poll()


@pytest.mark.parametrize("reply", [Reply(404, b"none"), Reply(204), Reply(200)])
def test_a_url_without_a_body_is_no_notice(reply: Reply) -> None:
    with metadata_server(lambda asked: reply) as server:
        assert list(UrlNotices(server.url).poll()) == []


def test_a_url_is_one_notice_whatever_its_body_is() -> None:
    bodies = iter((b"28 s left", b"26 s left"))
    with metadata_server(lambda asked: Reply(200, next(bodies))) as server:
        source = UrlNotices(f"{server.url}/notice")
        (notice,), (later,) = source.poll(), source.poll()
    assert notice.key == later.key
    assert notice.text == f"{server.url}/notice responds with 9 bytes"


@pytest.mark.parametrize("status", [302, 401, 403, 500])
def test_any_other_response_of_a_url_is_an_error(status: int) -> None:
    reply, reason = Reply(status, b"sorry"), f"HTTP {status}"
    with metadata_server(lambda asked: reply) as server, pytest.raises(NoticeError, match=reason):
        UrlNotices(server.url).poll()


def test_the_setting_names_a_cloud_a_url_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aws").write_text("a file of this name")
    assert {name: type(source_of(name)) for name in CLOUDS} == {
        "aws": type(source_of("aws-rebalance")),
        "aws-rebalance": type(source_of("aws")),
        "azure": type(source_of("azure")),
        "gcp": type(source_of("gcp")),
    }
    assert isinstance(source_of("https://host.example/notice"), UrlNotices)
    assert len(source_of("./aws").poll()) == 1
