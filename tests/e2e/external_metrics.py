"""A server of a learner's demand ratio as external.metrics.k8s.io/v1beta1, in a pod with the learner's image.

Usage: external_metrics.py NAMESPACE LEARNER_URL CERT KEY. Answers HTTPS on port 6443, for this namespace only. The
ratio is that of `kubebeast top`, by the same model as the PromQL of the chart's rules/demand.promql; its windows are
seconds instead of minutes.
"""

import datetime
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubebeast_observe.top.poller import Poller
from kubebeast_observe.top.source import DirectSource
from kubebeast_observe.top.view import make_view

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
METRIC = "kubebeast_learner_demand_ratio"
PORT = 6443


def answer(path: str, namespace: str, learner: Poller) -> dict[str, Any] | None:
    """Returns the answer that Kubernetes expects at a path; None for an unknown path."""
    api = f"{GROUP}/{VERSION}"
    path = path.partition("?")[0].rstrip("/")
    if path == f"/apis/{api}":
        kind = {"name": METRIC, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList"}
        resources = [{**kind, "verbs": ["get"]}]
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api, "resources": resources}
    if path != f"/apis/{api}/namespaces/{namespace}/{METRIC}":
        return None
    looks = learner.newest()
    ratio = None if looks.problem else make_view(looks).demand_ratio
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    value = {"metricName": METRIC, "metricLabels": {}, "timestamp": now}
    items = [] if ratio is None else [{**value, "value": f"{round(1000 * ratio)}m"}]
    return {"kind": "ExternalMetricValueList", "apiVersion": api, "metadata": {}, "items": items}


def handler(namespace: str, learner: Poller) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answer(self.path, namespace, learner)
            body = json.dumps(found or {}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main(namespace: str, url: str, cert: str, key: str) -> None:
    learner = Poller(DirectSource(url))
    learner.wait(2)
    server = ThreadingHTTPServer(("", PORT), handler(namespace, learner))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
