"""Notices of the clouds' metadata servers.

AWS: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html and
     https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
Google Cloud: https://cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption and
     https://cloud.google.com/compute/docs/metadata/getting-live-migration-notice
Azure: https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubebeast_learner.notices.notice import Notice, NoticeError, shown
from kubebeast_learner.notices.request import Response, request

METADATA_SERVER = "http://169.254.169.254"
"""The address of all three; Google's has a name, too, which a slow DNS could delay."""
TOKEN_TTL_S = 21_600
"""Longest life of a token of AWS."""
AZURE_TYPES = ("Preempt", "Terminate", "Redeploy", "Reboot")
"""Events that end the processes of a VM; a Freeze pauses it for seconds."""


class AwsNotices:
    """Interruption notices of a spot instance, and rebalance recommendations if wanted, by IMDSv2 alone."""

    def __init__(self, base_url: str = METADATA_SERVER, *, with_rebalance: bool = False) -> None:
        self._base_url, self._with_rebalance = base_url, with_rebalance
        self._token = ""

    def poll(self) -> Sequence[Notice]:
        return list(self._found())

    def _found(self) -> Iterator[Notice]:
        if action := self._get("/latest/meta-data/spot/instance-action"):
            verb, time = _text(action, "action"), shown(action.get("time", ""))
            yield Notice(f"{verb} {time}", f"AWS is about to {verb} this spot instance", time)
        if self._with_rebalance and (advice := self._get("/latest/meta-data/events/recommendations/rebalance")):
            time = _text(advice, "noticeTime")
            yield Notice(f"rebalance {time}", f"AWS recommends since {time} to leave this spot instance")

    def _get(self, path: str) -> Mapping[str, Any]:
        """Returns the object at a path; empty if there is none. A token that has expired is replaced once."""
        url = self._base_url + path
        response = request(url, headers={"X-aws-ec2-metadata-token": self._token or self._new_token()})
        if response.status == 401:
            response = request(url, headers={"X-aws-ec2-metadata-token": self._new_token()})
        return {} if response.status == 404 else _object(url, response)

    def _new_token(self) -> str:
        url = f"{self._base_url}/latest/api/token"
        response = request(url, "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_TTL_S)})
        self._token = _plain(url, response)
        return self._token


class GcpNotices:
    """Preemption of a VM of Google Cloud, and maintenance that terminates it."""

    def __init__(self, base_url: str = METADATA_SERVER) -> None:
        self._base_url = base_url

    def poll(self) -> Sequence[Notice]:
        notices = []
        preempted = self._get("instance/preempted")
        if preempted not in ("TRUE", "FALSE"):
            raise NoticeError(f"instance/preempted is {preempted!r}, neither TRUE nor FALSE")
        if preempted == "TRUE":
            notices.append(Notice("preempted", "Google Cloud preempts this VM, which has about 30 s left"))
        # A VM that migrates keeps its processes, so MIGRATE_ON_HOST_MAINTENANCE is no notice.
        if self._get("instance/maintenance-event") == "TERMINATE_ON_HOST_MAINTENANCE":
            notices.append(Notice("maintenance", "Google Cloud terminates this VM for the maintenance of its host"))
        return notices

    def _get(self, key: str) -> str:
        url = f"{self._base_url}/computeMetadata/v1/{key}"
        response = request(url, headers={"Metadata-Flavor": "Google"})
        if response.headers.get("metadata-flavor") != "Google":
            raise NoticeError(f"GET {url}: the response is not that of Google's metadata server")
        return _plain(url, response)


class AzureNotices:
    """Scheduled events of this VM that end its processes; those of other VMs of its set are in the same list."""

    def __init__(self, base_url: str = METADATA_SERVER) -> None:
        self._base_url = base_url
        self._name = ""

    def poll(self) -> Sequence[Notice]:
        self._name = self._name or _plain(*self._get("instance/compute/name?api-version=2021-02-01&format=text"))
        url, response = self._get("scheduledevents?api-version=2020-07-01")
        events = _object(url, response).get("Events")
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise NoticeError(f"GET {url}: the response has no list of Events")
        return [notice for event in events for notice in self._of(event)]

    def _of(self, event: Mapping[str, Any]) -> Iterator[Notice]:
        names = event.get("Resources")
        if not isinstance(names, list):
            raise NoticeError("a scheduled event of Azure has no list of Resources")
        kind = _text(event, "EventType")
        if kind in AZURE_TYPES and self._name in names:
            text = f"Azure has scheduled the event {kind} for this VM, {shown(self._name)}"
            yield Notice(_text(event, "EventId"), text, shown(event.get("NotBefore") or ""))

    def _get(self, path: str) -> tuple[str, Response]:
        url = f"{self._base_url}/metadata/{path}"
        return url, request(url, headers={"Metadata": "true"})


def _plain(url: str, response: Response) -> str:
    """Returns the text of a response. Raises NoticeError unless it is a success with some."""
    text = shown(response.body.decode(errors="replace").strip())
    if response.status != 200 or not text:
        raise NoticeError(f"{url}: HTTP {response.status}" + " without a body" * (response.status == 200))
    return text


def _object(url: str, response: Response) -> Mapping[str, Any]:
    """Returns the JSON object of a response. Raises NoticeError unless it is a success with one."""
    if response.status != 200:
        raise NoticeError(f"{url}: HTTP {response.status}")
    try:
        found = json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise NoticeError(f"{url}: the response is no JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise NoticeError(f"{url}: the response is no JSON object with values")
    return found


def _text(found: Mapping[str, Any], name: str) -> str:
    """Returns a text of a response, printable. Raises NoticeError if there is none."""
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise NoticeError(f"the response has no {name}, it has {shown(sorted(found))}")
    return shown(value)
