"""A request to a metadata server takes a bounded time and memory, and goes to no other host."""

import pytest

from harness.ports import free_port
from kubebeast_learner.notices import request as module
from kubebeast_learner.notices.notice import MAX_BYTES, NoticeError
from kubebeast_learner.notices.request import request
from tests.unit.learner.notices.metadata_server import Reply, dripping_server, metadata_server


def test_a_response_is_returned_whatever_its_status_is() -> None:
    with metadata_server(lambda asked: Reply(404, b"none", {"Metadata-Flavor": "Google"})) as server:
        response = request(f"{server.url}/some/path?name=1", "PUT", {"Metadata": "true"})
    assert (response.status, response.body, response.headers["metadata-flavor"]) == (404, b"none", "Google")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.headers["metadata"]) == ("PUT", "/some/path?name=1", "true")


def test_a_server_that_sends_a_byte_now_and_then_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE_S", 0.2)
    with dripping_server() as url, pytest.raises(NoticeError, match="no whole response within"):
        request(url)


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    with metadata_server(lambda asked: Reply(200, b"direct")) as server:
        assert request(server.url).body == b"direct"


def test_a_redirect_is_not_followed() -> None:
    with metadata_server(lambda asked: Reply(302, headers={"Location": "/elsewhere"})) as server:
        assert request(server.url).status == 302
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(200, b"x" * (MAX_BYTES + 1)), "larger than 64 KiB"),
        (Reply(200, b"half", {"Content-Length": "8"}), "ends 4 bytes too early"),
    ],
)
def test_a_response_that_is_too_large_or_cut_is_an_error(reply: Reply, reason: str) -> None:
    with metadata_server(lambda asked: reply) as server, pytest.raises(NoticeError, match=reason):
        request(server.url)


def test_a_refused_connection_is_an_error_that_names_the_url() -> None:
    url = f"http://127.0.0.1:{free_port()}/path"
    with pytest.raises(NoticeError, match=f"GET {url}: .*refused"):
        request(url)
