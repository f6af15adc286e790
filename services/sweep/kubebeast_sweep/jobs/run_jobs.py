"""The Jobs of the runs of a sweep at the API server."""

import logging
import time

from kubebeast_observe.errors import NotFoundError, WatchError
from kubebeast_observe.fleet.cluster import Cluster
from kubebeast_observe.fleet.pod_problem import JsonObject
from kubebeast_sweep.jobs.template import CONTAINER, SWEEP, JobTemplate

LOOK_S = 1.0
"""Interval at which the Jobs are listed."""
DELETE_WITHIN_S = 30.0
"""Time in which the API server must accept the end of a run."""

logger = logging.getLogger(__name__)


class RunJobs:
    """Jobs by name, as of a moment ago. Not thread-safe.

    An API server that does not answer leaves the runs as they are: it is asked again.
    """

    def __init__(self, cluster: Cluster, template: JobTemplate) -> None:
        self.template = template
        self._cluster = cluster
        self._jobs: dict[str, JsonObject] = {}
        self._looked_at = -LOOK_S
        self._is_down = False

    def find(self, name: str) -> JsonObject | None:
        """Returns the Job of that name, or None if there is none."""
        if time.monotonic() >= self._looked_at + LOOK_S:
            self._looked_at = time.monotonic()
            try:
                found = self._cluster.jobs(f"{SWEEP}={self.template.name}")
            except WatchError as error:
                self._note(error)
            else:
                self._note(None)
                self._jobs = {job["metadata"]["name"]: job for job in found}
        return self._jobs.get(name)

    def create(self, job: JsonObject) -> None:
        """Raises WatchError, a ConflictError if there is a Job of that name, which `find` then returns."""
        self._jobs[job["metadata"]["name"]] = self._cluster.create_job(job)

    def delete(self, name: str) -> None:
        """Ends the pods of a Job and deletes it. Blocks until the API server has accepted that, up to DELETE_WITHIN_S;
        if it does not, the error is logged.
        """
        deadline = time.monotonic() + DELETE_WITHIN_S
        while True:
            try:
                self._cluster.delete_job(name)
                break
            except NotFoundError:
                break
            except WatchError as error:
                if time.monotonic() > deadline:
                    logger.error("the Job %s may go on: %s", name, error)
                    break
                time.sleep(LOOK_S)
        self._jobs.pop(name, None)

    def newest_pod(self, name: str) -> JsonObject | None:
        """Returns the newest pod of a Job; None without one. Raises WatchError."""
        pods = self._cluster.pods(f"job-name={name}")
        return max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)

    def last_lines(self, pod: str, num_lines: int) -> str:
        """Returns the end of a pod's log. Raises WatchError."""
        return self._cluster.last_lines(pod, CONTAINER, num_lines)

    def _note(self, error: WatchError | None) -> None:
        if error is not None and not self._is_down:
            logger.warning("the state of the runs is unknown: %s", error)
        if error is None and self._is_down:
            logger.info("the state of the runs is known again")
        self._is_down = error is not None
