"""An S3 server in a pod, and its bucket as the tests read it."""

import contextlib
import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from harness.processes.s3_server import BUCKET, S3Server
from tests.e2e.cluster import Namespace
from tests.e2e.release import READY_S, image_values

NAME, PORT = "s3", 5000
SECRET = "bucket-key"


@dataclass(frozen=True)
class Request:
    """A request that the server has answered."""

    client: str
    method: str
    path: str
    status: int

    @property
    def is_change(self) -> bool:
        """True if an object was written or deleted."""
        return self.method in ("PUT", "POST", "DELETE") and self.status < 300


def start_s3(namespace: Namespace, node: str) -> None:
    """Starts the server on a node, with a Secret SECRET for its clients, and waits until it is ready."""
    images = image_values()
    name, tag = f"{images['image']['registry']}/kubebeast/s3", images["learner"]["image"]["tag"]
    container = {
        "name": NAME,
        "image": f"{name}:{tag}",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/moto-api/", "port": PORT}, "periodSeconds": 1, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
    }
    labels = {"app": NAME}
    service = {"selector": labels, "ports": [{"port": PORT, "protocol": "TCP"}]}
    objects = [
        {"kind": "Pod", "metadata": {"labels": labels}, "spec": {"nodeName": node, "containers": [container]}},
        {"kind": "Service", "metadata": {}, "spec": service},
    ]
    for each in objects:
        each |= {"apiVersion": "v1", "metadata": each["metadata"] | {"name": NAME}}  # type: ignore[operator]
    namespace.kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    variables = S3Server(PORT).environment | {"AWS_ENDPOINT_URL": f"http://{NAME}:{PORT}"}
    values = (f"--from-literal={key}={value}" for key, value in variables.items())
    namespace.kubectl("create", "secret", "generic", SECRET, *values)
    namespace.kubectl("wait", f"pod/{NAME}", "--for=condition=Ready", f"--timeout={READY_S:.0f}s")


@contextlib.contextmanager
def forward_s3(namespace: Namespace) -> Iterator[S3Server]:
    """Makes the server reachable for this process, and creates its bucket."""
    command = ["kubectl", "--namespace", namespace.name, "port-forward", f"pod/{NAME}", f":{PORT}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found, "kubectl port-forward ended"
            server = S3Server(int(found[1]))
            url = f"http://127.0.0.1:{server.port}/{BUCKET}"
            urllib.request.urlopen(urllib.request.Request(url, method="PUT")).close()
            yield server
        finally:
            process.kill()


def requests_of(namespace: Namespace, since: str = "") -> list[Request]:
    """Returns the requests from the server's log. since: time in RFC 3339; by default all."""
    log = namespace.kubectl("logs", f"pod/{NAME}", *([f"--since-time={since}"] if since else []))
    pattern = r'^(\S+) - - \[[^]]*\] "(?:\x1b\[\S+m)?(\S+) (\S+) HTTP/[\d.]+(?:\x1b\[0m)?" (\d+) '
    return [
        Request(client, method, path, int(status))
        for client, method, path, status in re.findall(pattern, log, flags=re.MULTILINE)
    ]
