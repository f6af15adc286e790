"""The part of a Kubernetes API server that `kubebeast fleet` needs, on a port of this machine."""

import json
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.http_server import JsonHandler, StatefulServer, serving

NAMESPACE = "train"
TOKEN = "valid"
RESOURCES = ("deployments", "jobs", "statefulsets", "pods", "events", "horizontalpodautoscalers")
USER = "system:serviceaccount:train:somebody"


@dataclass
class ApiServer:
    """The objects of the server, its refusals, and a record of requests. Fields may change between two commands."""

    address: str
    deployments: list[dict[str, Any]] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)
    autoscalers: list[dict[str, Any]] = field(default_factory=list)
    stateful_sets: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, list[str]] = field(default_factory=dict)
    """Answers of a pod to scrapes, by "name:port", one each; the last text stays. A pod that is not here is refused."""
    silent: set[str] = field(default_factory=set)
    """Pods, "name:port", that never answer."""
    refused: set[str] = field(default_factory=set)
    """Resources that USER has no right to."""
    page_items: int = 500
    """Largest page, regardless of the client's limit."""
    failing: bool = False
    """True if every request is answered with 503."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each request."""
    patches: list[tuple[str, Any]] = field(default_factory=list)
    """Path and body of each PATCH."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def kubeconfig(self, folder: Path, *, token: str = TOKEN, namespace: str = NAMESPACE) -> Path:
        """Writes the credentials of USER; the context's name is "main"."""
        return write_kubeconfig(folder, self.address, token=token, namespace=namespace)


def write_kubeconfig(folder: Path, address: str, *, token: str = TOKEN, namespace: str = NAMESPACE) -> Path:
    """Writes a kubeconfig for the API server at that URL."""
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def api_server() -> AbstractContextManager[ApiServer]:
    return serving(_Handler, ApiServer)


class _Handler(JsonHandler, BaseHTTPRequestHandler):  # the second base names the methods
    server: StatefulServer[ApiServer]

    @property
    def api(self) -> ApiServer:
        return self.server.state

    def do_GET(self) -> None:
        path = self._admit()
        if path is None:
            return
        match path:
            case ["api", "v1", "namespaces", name]:
                self.fail(404, f'namespaces "{name}" not found') if name != NAMESPACE else self.send({})
            case ["api", "v1", "namespaces", _, "pods", pod, "proxy", "metrics"]:
                self._send_metrics(pod)
            case [*_, "namespaces", namespace, resource] if resource in RESOURCES:
                self._send_page(resource, namespace)
            case _:
                self.fail(404, "the server could not find the requested resource")

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self._admit()
        if path is not None:
            self.api.patches.append(("/".join(path), body))
            self.send({"kind": "Scale", "spec": body["spec"]})

    def _admit(self) -> list[str] | None:
        """Returns the parts of the path; None once a refusal is sent."""
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        self.api.requests.append(f"{self.command} {'/'.join(parts)}")
        resources = {part for part in parts if part in self.api.refused}
        if {"pods", "proxy"} <= set(parts) and "pods/proxy" in self.api.refused:
            resources = {"pods/proxy"}
        if self.api.failing:
            self.fail(503, "the server is currently unable to handle the request")
        elif self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.fail(401, "Unauthorized")
        elif resources:
            self.fail(403, f'User "{USER}" cannot use resource "{resources.pop()}" in the namespace "{NAMESPACE}"')
        else:
            return parts
        return None

    def _send_page(self, resource: str, namespace: str) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        everything: list[dict[str, Any]] = {
            "deployments": self.api.deployments,
            "pods": self.api.pods,
            "horizontalpodautoscalers": self.api.autoscalers,
            "statefulsets": self.api.stateful_sets,
            "jobs": self.api.jobs,
            "events": self.api.events,
        }[resource]
        found = [
            item
            for item in everything
            if namespace == NAMESPACE and wanted.items() <= item["metadata"].get("labels", {}).items()
        ]
        start = int(query.get("continue", 0))
        end = start + min(int(query["limit"]), self.api.page_items)
        metadata = {"continue": str(end)} if end < len(found) else {}
        self.send({"kind": "List", "metadata": metadata, "items": found[start:end]})

    def _send_metrics(self, pod: str) -> None:
        if pod in self.api.silent:
            self.api.stopped.wait(60)
            self.close_connection = True
        elif pod in self.api.metrics:
            texts = self.api.metrics[pod]
            self.answer(200, texts.pop(0) if len(texts) > 1 else texts[0], "text/plain")
        else:
            self.fail(503, "error trying to reach service: connection refused")
