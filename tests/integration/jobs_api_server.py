"""The part of a Kubernetes API server that a sweep needs, on a port of this machine: its Jobs are processes here."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.http_server import JsonHandler, StatefulServer, serving

END_S = 60.0
CREATED = "2026-01-01T00:00:00Z"


@dataclass
class RunningJob:
    """A Job and the process of its only pod."""

    content: dict[str, Any]
    process: "subprocess.Popen[bytes]"
    output: Path

    @property
    def container(self) -> dict[str, Any]:
        return dict(self.content["spec"]["template"]["spec"]["containers"][0])

    def as_object(self) -> dict[str, Any]:
        status = self.process.poll()
        conditions = []
        if status is not None and "deletionTimestamp" not in self.content["metadata"]:
            reason = {"reason": "PodFailurePolicy", "message": f"exit status {status}"}
            conditions = [{"type": "Complete" if status == 0 else "Failed", "status": "True", **reason}]
        return {**self.content, "status": {"conditions": conditions}}

    def pod(self) -> dict[str, Any]:
        metadata = {"name": f"{self.content['metadata']['name']}-x", "creationTimestamp": CREATED}
        state = {"terminated": {"exitCode": self.process.poll()}}
        container = {"name": self.container["name"], "state": state}
        return {"metadata": metadata, "status": {"containerStatuses": [container]}}


@dataclass
class JobsApi:
    """The Jobs of the server, and a record of those that were created."""

    address: str
    folder: Path
    jobs: dict[str, RunningJob] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    num_refused: int = 0
    """Requests that were answered with 503."""
    failing: bool = False
    """True if every request is answered with 503."""
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self, content: dict[str, Any]) -> RunningJob:
        name = content["metadata"]["name"]
        output = self.folder / f"{name}.output"
        arguments = content["spec"]["template"]["spec"]["containers"][0]["args"]
        words = [sys.executable, "-m", "kubebeast_learner", *(each.replace("$$", "$") for each in arguments)]
        with output.open("ab") as file:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.created.append(content)
        self.jobs[name] = RunningJob(content, process, output)
        return self.jobs[name]

    def names(self) -> list[str]:
        """Returns the names of the Jobs in the order of their creation, those of later deleted ones too."""
        return [content["metadata"]["name"] for content in self.created]

    def live(self) -> list[RunningJob]:
        """Returns the Jobs that are there, without those that have ended while they were deleted."""
        with self.lock:
            for name, job in list(self.jobs.items()):
                if "deletionTimestamp" in job.content["metadata"] and job.process.poll() is not None:
                    del self.jobs[name]
            return list(self.jobs.values())

    def delete(self, name: str) -> None:
        with self.lock:
            self.jobs[name].content["metadata"]["deletionTimestamp"] = CREATED
            self.jobs[name].process.send_signal(signal.SIGTERM)

    def end_all(self) -> None:
        for job in self.jobs.values():
            job.process.kill()
            job.process.wait(END_S)


def jobs_api(folder: Path) -> AbstractContextManager[JobsApi]:
    return serving(_Handler, lambda address: JobsApi(address, folder))


class _Handler(JsonHandler, BaseHTTPRequestHandler):  # the second base names the methods
    server: StatefulServer[JobsApi]

    @property
    def api(self) -> JobsApi:
        return self.server.state

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_admitted():
            name = content["metadata"]["name"]
            with self.api.lock:
                if any(job.content["metadata"]["name"] == name for job in self.api.live()):
                    self.fail(409, f'jobs.batch "{name}" already exists')
                else:
                    self.send(self.api.start(content).as_object())

    def do_GET(self) -> None:
        if not self._is_admitted():
            return
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        match parts:
            case [*_, "jobs"]:
                found = [job.as_object() for job in self.api.live()]
                matching = [job for job in found if wanted.items() <= job["metadata"]["labels"].items()]
                self.send({"kind": "List", "metadata": {}, "items": matching})
            case [*_, "pods"]:
                self.send({"kind": "List", "metadata": {}, "items": [self.api.jobs[wanted["job-name"]].pod()]})
            case [*_, "pods", pod, "log"]:
                lines = self.api.jobs[pod.removesuffix("-x")].output.read_text().splitlines()
                self.answer(200, "\n".join(lines[-int(query["tailLines"]) :]), "text/plain")
            case _:
                self.fail(404, "the server could not find the requested resource")

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = urlsplit(self.path).path.rpartition("/")[2]
        if self._is_admitted():
            if any(job.content["metadata"]["name"] == name for job in self.api.live()):
                self.api.delete(name)
                self.send({})
            else:
                self.fail(404, f'jobs.batch "{name}" not found')

    def _is_admitted(self) -> bool:
        if self.api.failing:
            self.api.num_refused += 1
            self.fail(503, "the server is currently unable to handle the request")
        return not self.api.failing
