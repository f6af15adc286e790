"""A run as a Job of Kubernetes."""

import contextlib
import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from kubebeast_observe.errors import ConflictError, UnavailableError, WatchError
from kubebeast_observe.fleet.pod_problem import JsonObject
from kubebeast_sweep.jobs.run_jobs import RunJobs
from kubebeast_sweep.jobs.template import CONTAINER
from kubebeast_sweep.scores import Curve
from kubebeast_sweep.training_run import STOPPED

FAILED = 1
"""Exit status of a run if that of its container is unknown."""
_LINES = 5
"""Last lines of the log of a run that has failed."""

logger = logging.getLogger(__name__)


class RunJob:
    """A TrainingRun. Kubernetes starts its pod again if its node goes."""

    def __init__(self, jobs: RunJobs, arguments: Sequence[str], folder: Path, cores: Collection[int]) -> None:
        self.folder, self.cores, self.curve = folder, cores, Curve(folder)
        self.cpu_s: float | None = None
        self._jobs, self._arguments = jobs, arguments
        self._name = jobs.template.job_name(folder.name)
        self._has_job = False
        self._status: int | None = None
        self._reason = ""

    def poll(self) -> int | None:
        """Creates the Job, unless there is one; blocks for an answer of the API server."""
        if self._status is None:
            self._status = self._look() if self._has_job else self._begin()
        return self._status

    def stop(self) -> None:
        """Deletes the Job. Its pod has the grace period of the template for a checkpoint."""
        if self._status is None:
            self._status = STOPPED
            self._jobs.delete(self._name)

    def wait(self) -> None:
        """Returns at once: the scheduler of the cluster finds places. A next Job of the run waits for the end of this
        one."""

    def last_lines(self) -> str:
        return self._reason

    def _begin(self) -> int | None:
        try:
            self._jobs.create(self._jobs.template.job_of(self.folder.name, self._arguments))
        except ConflictError:
            self._adopt()
            return None
        except UnavailableError as error:
            logger.warning("run %s waits: %s", self.folder.name, error)
            return None
        except WatchError as error:
            self._reason = str(error)
            return FAILED
        self._has_job = True
        return None

    def _adopt(self) -> None:
        """Takes over a Job that a predecessor of this process has begun; one that ends, of another run or of another
        owner, is first gone.
        """
        job = self._jobs.find(self._name)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        if self._jobs.template.is_that_of(job, self._arguments):
            self._has_job = True
        else:
            self._jobs.delete(self._name)

    def _look(self) -> int | None:
        job = self._jobs.find(self._name)
        if job is None or "deletionTimestamp" in job["metadata"]:
            logger.warning("the Job %s was deleted", self._name)
            return STOPPED
        ends = {
            each["type"]: each for each in job.get("status", {}).get("conditions") or [] if each["status"] == "True"
        }
        if "Complete" in ends:
            return 0
        return self._failed(ends["Failed"]) if "Failed" in ends else None

    def _failed(self, condition: JsonObject) -> int:
        """Notes the reason and returns the exit status of the newest container that has ended."""
        self._reason = f"{condition.get('reason', 'Failed')}: {condition.get('message', '')}"
        with contextlib.suppress(WatchError, LookupError, TypeError):  # the pod may be gone, with its log
            pod: Any = self._jobs.newest_pod(self._name)
            (container,) = (each for each in pod["status"]["containerStatuses"] if each["name"] == CONTAINER)
            status = int(container["state"]["terminated"]["exitCode"])
            self._reason = self._jobs.last_lines(pod["metadata"]["name"], _LINES)
            return status or FAILED
        return FAILED
