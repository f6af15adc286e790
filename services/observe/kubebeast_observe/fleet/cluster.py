"""Client of the API server, with its refusals turned into errors.

Answers are read as plain JSON: the client's models are slow over thousands of pods and reject objects of API servers
that are much older or newer than they are.
"""

import contextlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException

from kubebeast_observe.errors import ConflictError, NotFoundError, RefusedError, UnavailableError, WatchError
from kubebeast_observe.fleet.pod_problem import JsonObject
from kubebeast_observe.scrape import MAX_PAGE_BYTES, page_text

REQUEST_TIMEOUT_S = 3.0
"""Timeout for connecting, and for every wait for bytes of the answer."""
PAGE_ITEMS = 500
"""Objects in one answer:
https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""
MESSAGE_CHARS = 500
"""Maximum number of characters of an error's message."""


class Cluster:
    """One namespace of a cluster. Every method blocks for its answers and raises WatchError. Thread-safe."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.namespace = namespace
        self.server: str = api.configuration.host
        self._apps = client.AppsV1Api(api)
        self._core = client.CoreV1Api(api)
        self._autoscaling = client.AutoscalingV1Api(api)
        self._batch = client.BatchV1Api(api)

    def deployments(self, selector: str) -> list[JsonObject]:
        return self._list(self._apps.list_namespaced_deployment, label_selector=selector)

    def stateful_sets(self, selector: str) -> list[JsonObject]:
        return self._list(self._apps.list_namespaced_stateful_set, label_selector=selector)

    def jobs(self, selector: str) -> list[JsonObject]:
        return self._list(self._batch.list_namespaced_job, label_selector=selector)

    def create_job(self, job: JsonObject) -> JsonObject:
        """Returns the new object; its pods are created afterwards. Raises ConflictError if there is one of its name."""
        return cast(JsonObject, json.loads(self._ask(self._batch.create_namespaced_job, self.namespace, job)))

    def delete_job(self, name: str) -> None:
        """Returns before its pods have ended. Raises NotFoundError if there is none."""
        delete = partial(self._batch.delete_namespaced_job, propagation_policy="Foreground")
        self._ask(delete, name, self.namespace)

    def last_lines(self, pod: str, container: str, num_lines: int) -> str:
        """Returns the end of the log of a container."""
        read = partial(self._core.read_namespaced_pod_log, container=container, tail_lines=num_lines)
        return self._ask(read, pod, self.namespace, max_bytes=MAX_PAGE_BYTES).decode("utf-8", errors="replace")

    def warnings(self) -> list[JsonObject]:
        """Returns the warning events of all objects; the API server keeps them for an hour."""
        return self._list(self._core.list_namespaced_event, field_selector="type=Warning")

    def pods(self, selector: str) -> list[JsonObject]:
        return self._list(self._core.list_namespaced_pod, label_selector=selector)

    def autoscalers(self) -> list[JsonObject]:
        """Returns HorizontalPodAutoscalers as autoscaling/v1, which every API server has."""
        return self._list(self._autoscaling.list_namespaced_horizontal_pod_autoscaler)

    def scale(self, deployment: str, replicas: int) -> None:
        """Changes spec.replicas; returns before pods are created or deleted."""
        self._ask(
            self._apps.patch_namespaced_deployment_scale, deployment, self.namespace, {"spec": {"replicas": replicas}}
        )

    def page(self, pod: str, port: int, path: str) -> str:
        """Returns a page of the pod, e.g. metrics, through the API server. Raises WatchError above MAX_PAGE_BYTES."""
        fetch = self._core.connect_get_namespaced_pod_proxy_with_path
        body = self._ask(fetch, f"{pod}:{port}", self.namespace, path, max_bytes=MAX_PAGE_BYTES + 1)
        return page_text(body, f"/{path} of pod {pod}")

    def require_namespace(self) -> None:
        """Raises WatchError if the namespace is known not to exist; lists of its objects are empty in that case."""
        try:
            self._ask(self._core.read_namespace, self.namespace)
        except RefusedError:
            pass  # namespaces are cluster-wide, a Role cannot allow to read them
        except NotFoundError as error:
            raise WatchError(f"namespace = {self.namespace!r}: there is none of that name") from error

    def _list(self, call: Callable[..., Any], **selectors: str) -> list[JsonObject]:
        items: list[JsonObject] = []
        position: dict[str, str] = {}
        while True:
            body = self._ask(partial(call, limit=PAGE_ITEMS, **position, **selectors), self.namespace)
            try:
                page = json.loads(body)
                items += page["items"]
                token = page["metadata"].get("continue")
            except (ValueError, KeyError, TypeError) as error:
                raise UnavailableError(f"{self.server} does not answer like a Kubernetes API server") from error
            if not token:
                return items
            position = {"_continue": token}

    def _ask(self, call: Callable[..., Any], *arguments: object, max_bytes: int | None = None) -> bytes:
        """Returns the answer's body, up to max_bytes. Raises the matching WatchError."""
        timeout_s = (REQUEST_TIMEOUT_S, REQUEST_TIMEOUT_S)
        try:
            with contextlib.closing(call(*arguments, _preload_content=False, _request_timeout=timeout_s)) as answer:
                return cast(bytes, answer.read(max_bytes))
        except ApiException as error:
            raise self._explained(error) from error
        except (urllib3.exceptions.HTTPError, OSError, ConfigException) as error:
            reason = getattr(error, "reason", None) or error
            raise UnavailableError(f"the API server {self.server} cannot be reached: {reason}") from error

    def _explained(self, error: ApiException) -> WatchError:
        message = _message(error)
        if error.status == 401:
            return WatchError(f"the API server {self.server} does not accept the credentials: {message}")
        if error.status == 403:
            return RefusedError(f"refused by the API server: {message}", self.namespace)
        if error.status == 404:
            return NotFoundError(message)
        if error.status == 409:
            return ConflictError(message)
        if error.status == 429 or int(error.status or 0) >= 500:
            return UnavailableError(f"the API server answers {error.status}: {message}")
        return WatchError(f"the API server answers {error.status}: {message}")


def _message(error: ApiException) -> str:
    """Returns the message of a Status object, or the body of a proxy's answer, on one line.

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/
    """
    body: Any = error.body  # text or bytes, depending on the version of the client
    text = body.decode("utf-8", errors="replace") if isinstance(body, bytes) else str(body or "")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["message"])
    return " ".join(text.split())[:MESSAGE_CHARS] or str(error.reason)
