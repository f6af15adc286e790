"""Notices of the clouds, from servers that respond as their documentation says."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubebeast_learner.notices.clouds import AwsNotices, AzureNotices, GcpNotices
from kubebeast_learner.notices.notice import Notice, NoticeError
from tests.unit.learner.notices.metadata_server import Asked, MetadataServer, Reply, Respond, metadata_server

ACTION, REBALANCE = "/latest/meta-data/spot/instance-action", "/latest/meta-data/events/recommendations/rebalance"
PREEMPTED, MAINTENANCE = "/computeMetadata/v1/instance/preempted", "/computeMetadata/v1/instance/maintenance-event"
EVENT = {
    "EventId": "602d9444-d2cd-49c7-8624-8643e7171297",
    "EventType": "Preempt",
    "ResourceType": "VirtualMachine",
    "Resources": ["learner_0", "learner_3"],
    "EventStatus": "Scheduled",
    "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
    "Description": "",
    "EventSource": "Platform",
    "DurationInSeconds": -1,
}


def aws(found: dict[str, bytes], tokens: list[str]) -> Respond:
    """Responds as IMDSv2 does: with `found` by path, to requests with the newest of the `tokens` that it has given."""

    def respond(asked: Asked) -> Reply:
        if asked.path == "/latest/api/token":
            assert (asked.method, asked.headers["x-aws-ec2-metadata-token-ttl-seconds"]) == ("PUT", "21600")
            tokens.append(f"token-{len(tokens)}")
            return Reply(200, tokens[-1].encode())
        if not tokens or asked.headers.get("x-aws-ec2-metadata-token") != tokens[-1]:
            return Reply(401)
        return Reply(200, found[asked.path]) if asked.path in found else Reply(404, b"<html>Not Found</html>")

    return respond


def gcp(preempted: bytes = b"FALSE", maintenance: bytes = b"NONE") -> Respond:
    def respond(asked: Asked) -> Reply:
        assert asked.headers["metadata-flavor"] == "Google"
        body = {PREEMPTED: preempted, MAINTENANCE: maintenance}[asked.path]
        return Reply(200, body, {"Metadata-Flavor": "Google"})

    return respond


def azure(events: Any, name: bytes = b"learner_0") -> Respond:
    def respond(asked: Asked) -> Reply:
        if asked.headers.get("metadata") != "true":
            return Reply(400)
        if asked.path == "/metadata/instance/compute/name?api-version=2021-02-01&format=text":
            return Reply(200, name)
        assert asked.path == "/metadata/scheduledevents?api-version=2020-07-01"
        return Reply(200, json.dumps({"DocumentIncarnation": 1, "Events": events}).encode())

    return respond


def test_an_interruption_of_a_spot_instance_is_a_notice_with_its_time() -> None:
    found: dict[str, bytes] = {}
    tokens: list[str] = []
    with metadata_server(aws(found, tokens)) as server:
        source = AwsNotices(server.url)
        assert list(source.poll()) == []
        found[ACTION] = b'{"action": "terminate", "time": "2017-09-18T08:22:00Z"}'
        (notice,) = source.poll()
        assert str(notice) == "AWS is about to terminate this spot instance; not before 2017-09-18T08:22:00Z"
        assert list(source.poll()) == [notice]
    assert len(tokens) == 1, "a token lasts"


def test_a_token_that_has_expired_is_replaced() -> None:
    tokens: list[str] = []
    with metadata_server(aws({ACTION: b'{"action": "stop", "time": "2017-09-18T08:22:00Z"}'}, tokens)) as server:
        source = AwsNotices(server.url)
        (notice,) = source.poll()
        tokens.append("a newer one")
        assert list(source.poll()) == [notice]


def test_a_rebalance_recommendation_counts_only_if_wanted() -> None:
    with metadata_server(aws({REBALANCE: b'{"noticeTime": "2020-10-26T08:22:00Z"}'}, [])) as server:
        assert list(AwsNotices(server.url).poll()) == []
        (notice,) = AwsNotices(server.url, with_rebalance=True).poll()
    assert "recommends since 2020-10-26T08:22:00Z" in notice.text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "is no JSON"),
        (b"[" * 30_000, "is no JSON"),
        (b'["terminate"]', "no JSON object"),
        (b"{}", "no JSON object with values"),
        (b'{"time": "2017-09-18T08:22:00Z"}', "has no action"),
        (b'{"action": 7}', "has no action"),
    ],
)
def test_a_malformed_response_is_an_error_and_no_notice(body: bytes, reason: str) -> None:
    with metadata_server(aws({ACTION: body}, [])) as server, pytest.raises(NoticeError, match=reason):
        AwsNotices(server.url).poll()


def test_a_text_that_could_forge_a_log_line_is_shown_in_one_line() -> None:
    body = json.dumps({"action": "stop\n[ERROR] forged", "time": "x" * 1000}).encode()
    with metadata_server(aws({ACTION: body}, [])) as server:
        (notice,) = AwsNotices(server.url).poll()
    assert "\n" not in str(notice) and len(str(notice)) < 500


def test_preemption_and_terminating_maintenance_of_google_are_notices() -> None:
    with metadata_server(gcp()) as server:
        source = GcpNotices(server.url)
        assert list(source.poll()) == []
        server.respond = gcp(preempted=b"TRUE")
        assert [notice.key for notice in source.poll()] == ["preempted"]
        server.respond = gcp(maintenance=b"MIGRATE_ON_HOST_MAINTENANCE")
        assert list(source.poll()) == [], "a VM that migrates keeps its processes"
        server.respond = gcp(maintenance=b"TERMINATE_ON_HOST_MAINTENANCE")
        assert [notice.key for notice in source.poll()] == ["maintenance"]


def not_google(asked: Asked) -> Reply:
    return Reply(200, b"TRUE")


def missing(asked: Asked) -> Reply:
    return Reply(404, b"<html>", {"Metadata-Flavor": "Google"})


@pytest.mark.parametrize(
    ("respond", "reason"),
    [(not_google, "not that of Google"), (missing, "HTTP 404"), (gcp(preempted=b"MAYBE"), "neither TRUE nor FALSE")],
)
def test_a_response_of_something_else_is_no_preemption(respond: Respond, reason: str) -> None:
    with metadata_server(respond) as server, pytest.raises(NoticeError, match=reason):
        GcpNotices(server.url).poll()


@pytest.mark.parametrize("kind", ["Preempt", "Terminate", "Redeploy", "Reboot"])
def test_an_event_of_azure_that_ends_this_vm_is_a_notice(kind: str) -> None:
    with metadata_server(azure([{**EVENT, "EventType": kind}])) as server:
        (notice,) = AzureNotices(server.url).poll()
    text = f"Azure has scheduled the event {kind} for this VM, learner_0"
    assert notice == Notice(str(EVENT["EventId"]), text, "Mon, 19 Sep 2016 18:29:47 GMT")


def test_an_event_that_has_started_has_no_time() -> None:
    with metadata_server(azure([{**EVENT, "EventStatus": "Started", "NotBefore": ""}])) as server:
        (notice,) = AzureNotices(server.url).poll()
    assert notice.deadline == ""


@pytest.mark.parametrize("changes", [{"Resources": ["learner_1"]}, {"EventType": "Freeze"}])
def test_events_of_other_vms_and_pauses_are_no_notices(changes: dict[str, Any]) -> None:
    with metadata_server(azure([{**EVENT, **changes}])) as server:
        assert list(AzureNotices(server.url).poll()) == []


@pytest.mark.parametrize("events", [None, [7], [{}], [{**EVENT, "EventId": None}], [{**EVENT, "Resources": "all"}]])
def test_malformed_events_are_an_error(events: Any) -> None:
    with metadata_server(azure(events)) as server, pytest.raises(NoticeError):
        AzureNotices(server.url).poll()


@pytest.mark.parametrize("make", [AwsNotices, GcpNotices, AzureNotices])
def test_an_error_of_the_server_is_no_notice(make: Callable[[str], AwsNotices]) -> None:
    def respond(asked: Asked) -> Reply:
        return Reply(503, b"TRUE", {"Metadata-Flavor": "Google"})

    with metadata_server(respond) as server, pytest.raises(NoticeError, match="HTTP 503"):
        make(server.url).poll()


def test_the_name_of_the_vm_is_requested_once() -> None:
    def names(server: MetadataServer) -> int:
        return sum("compute/name" in asked.path for asked in server.asked)

    with metadata_server(azure([])) as server:
        source = AzureNotices(server.url)
        source.poll()
        source.poll()
        assert names(server) == 1
