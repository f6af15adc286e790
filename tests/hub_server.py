"""A server that does what the Hugging Face Hub does with a model: creates, checks, takes and gives its files.

The endpoints and their JSON are those that huggingface_hub uses: https://huggingface.co/docs/hub/api. Large files
come by Git LFS, https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md.
"""

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import yaml

from tests.http_server import StatefulServer, serving

TOKEN = "hf_" + "aBcDeFgH" * 4
LARGE = (".safetensors", ".png", ".mp4", ".gif")


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    num_commits: int = 0

    @property
    def sha(self) -> str:
        return f"{self.num_commits:040x}"


@dataclass
class Hub:
    url: str
    stopped: threading.Event = field(default_factory=threading.Event)
    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    """Large files by their SHA-256."""
    faults: dict[str, int] = field(default_factory=dict)
    """Statuses of requests by a pattern of "METHOD /path"."""
    asked: list[str] = field(default_factory=list)

    def environment(self, home: object, token: str = TOKEN) -> dict[str, str]:
        """Returns variables of a client that has no other settings. Xet, a protocol of its own, is not served."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_TOKEN": token,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }


class _RefusedError(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StatefulServer[Hub]

    def _respond(self) -> None:
        hub, path = self.server.state, self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = f"{self.command} {path}"
        hub.asked.append(asked)
        try:
            status = next((status for pattern, status in hub.faults.items() if re.search(pattern, asked)), 0)
            if status:
                raise _RefusedError(status, "injected")
            needs_token = path != "/api/validate-yaml" and not path.startswith("/lfs/")
            if needs_token and f"Bearer {TOKEN}" != self.headers.get("Authorization"):
                raise _RefusedError(401, "Invalid username or password.")
            self._send(*self._result(hub, path, body))
        except _RefusedError as refused:
            self._send(refused.status, {"error": str(refused), "url": f"{hub.url}{path}"})

    def _result(self, hub: Hub, path: str, body: bytes) -> tuple[int, Any]:
        if path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted['organization']}/{wanted['name']}"
            exists = name in hub.repositories
            is_private = wanted.get("visibility") == "private" or wanted.get("private") is True  # of older clients
            hub.repositories.setdefault(name, Repository(is_private))
            return (409 if exists else 200), {
                "url": f"{hub.url}/{name}",
                "error": "You already created this model repo",
            }
        if path == "/api/validate-yaml":
            return _checked(json.loads(body)["content"])
        if found := re.fullmatch(r"/lfs/(\w{64})", path):
            if hashlib.sha256(body).hexdigest() != found[1]:
                raise _RefusedError(400, "wrong content")
            hub.objects[found[1]] = body
            return 200, {}
        found = re.match(r"/(?:api/models/)?(?P<id>[^/]+/[^/]+?)(?:\.git)?(?P<rest>/.*)?$", path)
        if found is None or found["id"] not in hub.repositories:
            raise _RefusedError(404, "Repository not found")
        return self._of_repository(hub, hub.repositories[found["id"]], found["id"], found["rest"] or "", body)

    def _of_repository(self, hub: Hub, repository: Repository, name: str, rest: str, body: bytes) -> tuple[int, Any]:
        if rest == "/preupload/main":
            files = [each["path"] for each in json.loads(body)["files"]]
            modes = [(path, "lfs" if path.endswith(LARGE) else "regular") for path in files]
            return 200, {"files": [{"path": p, "uploadMode": mode, "shouldIgnore": False} for p, mode in modes]}
        if rest == "/info/lfs/objects/batch":
            objects = json.loads(body)["objects"]
            return 200, {"transfer": "basic", "objects": [_upload(hub, each) for each in objects]}
        if rest == "/commit/main":
            lines = [json.loads(line) for line in body.splitlines()]
            repository.files |= dict(filter(None, (_committed(hub, line) for line in lines)))
            repository.num_commits += 1
            url = f"{hub.url}/{name}/commit/{repository.sha}"
            return 200, {"commitUrl": url, "commitOid": repository.sha, "success": True}
        if rest.startswith("/tree/"):
            entries = repository.files.items()
            return 200, [
                {"type": "file", "path": p, "size": len(content), "oid": _oid(content)} for p, content in entries
            ]
        if found := re.fullmatch(r"/resolve/[^/]+/(.+)", rest):
            if found[1] not in repository.files:
                raise _RefusedError(404, "Entry not found")
            return 200, repository.files[found[1]]
        siblings = [{"rfilename": path} for path in repository.files]
        about = {"id": name, "modelId": name, "sha": repository.sha, "private": repository.private, "tags": []}
        return 200, {**about, "siblings": siblings, "downloads": 0, "likes": 0}

    def _send(self, status: int, content: Any) -> None:
        is_file = isinstance(content, bytes)
        body = content if is_file else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if is_file:
            self.send_header("ETag", f'"{_oid(body)}"')
            self.send_header("X-Repo-Commit", next(iter(self.server.state.repositories.values())).sha)
        else:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None: ...

    do_GET = do_HEAD = do_POST = do_PUT = _respond  # noqa: N815 - the names of http.server


def _checked(card: str) -> tuple[int, Any]:
    """Checks the metadata of a card: a mapping, and for each result a task, a dataset and metrics."""
    found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    metadata = yaml.safe_load(found[1]) if found else None
    errors = [] if isinstance(metadata, Mapping) else ["no metadata"]
    for model in metadata.get("model-index", ()) if isinstance(metadata, Mapping) else ():
        for result in model["results"]:
            errors += [f"{key} is missing" for key in ("task", "dataset", "metrics") if not result.get(key)]
    return (400 if errors else 200), {"errors": [{"message": each} for each in errors], "warnings": []}


def _upload(hub: Hub, wanted: Mapping[str, Any]) -> dict[str, Any]:
    known = {"oid": wanted["oid"], "size": wanted["size"]}
    if wanted["oid"] in hub.objects:
        return known
    return {**known, "actions": {"upload": {"href": f"{hub.url}/lfs/{wanted['oid']}"}}}


def _committed(hub: Hub, line: Mapping[str, Any]) -> tuple[str, bytes] | None:
    value = line["value"]
    if line["key"] == "file":
        return value["path"], base64.b64decode(value["content"])
    return (value["path"], hub.objects[value["oid"]]) if line["key"] == "lfsFile" else None


def _oid(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


def serve_hub() -> contextlib.AbstractContextManager[Hub]:
    """Serves an empty Hub."""
    return serving(_Handler, Hub)
