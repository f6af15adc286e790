"""Waits until a Job or a JobSet has ended, and then scales Deployments to zero. For a pod with a service account.

usage: end_fleet.py --workload PATH --deployments PATH [--server URL] [--account FOLDER] [--look-every-s S] NAME...

--workload is the path of the Job below the API server, --deployments that of the collection, and each NAME one of them.
Failed requests are repeated. Exit status 0 when all are scaled, 143 after SIGTERM.
"""

import argparse
import json
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ENDS = ("Complete", "Completed", "Failed")
"""Conditions of a Job, and of a JobSet, that has ended."""
TIMEOUT_S = 10.0
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""


class ApiServer:
    """Requests to an API server; the token is read again for each, because the kubelet replaces it."""

    def __init__(self, url: str, account: Path) -> None:
        self._url, self._token = url, account / "token"
        authority = account / "ca.crt"
        self._context = ssl.create_default_context(cafile=str(authority)) if url.startswith("https:") else None

    def ask(self, method: str, path: str, patch: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns the answer. Raises OSError for every failure, and ValueError for an answer that is no JSON."""
        headers = {"Authorization": f"Bearer {self._token.read_text().strip()}", "Accept": "application/json"}
        body = None
        if patch is not None:
            headers["Content-Type"], body = "application/merge-patch+json", json.dumps(patch).encode()
        request = urllib.request.Request(self._url + path, data=body, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._context) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


def end_of(workload: dict[str, Any]) -> str:
    """Returns the condition in which it has ended; "" if it has not, or is being deleted for a successor."""
    if "deletionTimestamp" in workload["metadata"]:
        return ""
    conditions = workload.get("status", {}).get("conditions") or []
    ends = [item["type"] for item in conditions if item["type"] in ENDS and item["status"] == "True"]
    return str(ends[0]) if ends else ""


def try_once(api: ApiServer, workload: str, deployments: str, names: list[str]) -> str:
    """Scales the Deployments if the workload has ended. Returns the condition, or "". Raises OSError and ValueError."""
    end = end_of(api.ask("GET", workload))
    if end:
        for name in names:
            try:
                api.ask("PATCH", f"{deployments}/{name}/scale", {"spec": {"replicas": 0}})
            except urllib.error.HTTPError as error:
                if error.code != 404:  # a Deployment that was deleted needs no scaling
                    raise
    return end


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--deployments", required=True)
    parser.add_argument("--server", default="https://kubernetes.default.svc")
    parser.add_argument("--account", type=Path, default=Path(ACCOUNT))
    parser.add_argument("--look-every-s", type=float, default=10.0)
    parser.add_argument("names", nargs="+")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    api, problem = ApiServer(words.server, words.account), ""
    print(f"waiting for the end of {words.workload}", flush=True)
    while True:
        try:
            end, last, problem = try_once(api, words.workload, words.deployments, words.names), problem, ""
        except (OSError, ValueError) as error:
            end, last, problem = "", problem, f"{type(error).__name__}: {error}"
        if end:
            print(f"{end}: scaled {', '.join(words.names)} to 0", flush=True)
            return 0
        if problem != last:
            print(problem or "the API server answers again", flush=True)
        time.sleep(words.look_every_s)


if __name__ == "__main__":
    sys.exit(main())
