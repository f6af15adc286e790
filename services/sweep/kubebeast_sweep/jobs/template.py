"""The Job of which those of the runs are copies (https://kubernetes.io/docs/concepts/workloads/controllers/job/)."""

import copy
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubebeast_common.settings import ConfigError
from kubebeast_observe.fleet.api_objects import RUN_LABEL
from kubebeast_observe.fleet.pod_problem import JsonObject

CONTAINER = "learner"
"""Name of the container that trains."""
SWEEP, ARGUMENTS = "kubebeast/sweep", "kubebeast/arguments"
"""Label with the sweep, and the annotation with a hash of the run's arguments."""
MAX_NAME_CHARS = 40
"""Longest name of the template: names of Jobs have at most 63 characters, and a run adds its own."""


class Owner(NamedTuple):
    """The Job of the sweep, with which Kubernetes deletes those of its runs."""

    name: str
    uid: str


class JobTemplate:
    """A checked template."""

    def __init__(self, path: Path, owner: Owner | None) -> None:
        """Raises ConfigError, which names the file and the field."""
        try:
            job = yaml.safe_load(path.read_text(encoding="utf-8"))
            self.name = str(job["metadata"]["name"])
            containers = job["spec"]["template"]["spec"]["containers"]
            is_usable = any(container["name"] == CONTAINER for container in containers)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"job_template = '{path}': {' '.join(str(error).split())}") from error
        except (KeyError, TypeError) as error:
            reason = f"is no Job with a name and containers: {error} is missing or has another type"
            raise ConfigError(f"job_template = '{path}': {reason}") from error
        if not is_usable or (job.get("apiVersion"), job.get("kind")) != ("batch/v1", "Job"):
            raise ConfigError(f"job_template = '{path}': must be a batch/v1 Job with a container {CONTAINER!r}")
        if len(self.name) > MAX_NAME_CHARS:
            reason = f"has the name {self.name!r}, and at most {MAX_NAME_CHARS} characters leave room for those of runs"
            raise ConfigError(f"job_template = '{path}': {reason}")
        self._job, self._owner = job, owner

    def job_of(self, run: str, arguments: Sequence[str]) -> dict[str, Any]:
        """Returns the Job of a run."""
        job: dict[str, Any] = copy.deepcopy(self._job)
        pod = job["spec"]["template"]
        labels = {SWEEP: self.name, RUN_LABEL: run}
        for metadata in (job["metadata"], pod.setdefault("metadata", {})):
            metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        job["metadata"]["name"] = self.job_name(run)
        annotations = {**(job["metadata"].get("annotations") or {}), ARGUMENTS: hash_of(arguments)}
        job["metadata"]["annotations"] = annotations
        if self._owner:
            reference = {"apiVersion": "batch/v1", "kind": "Job", "name": self._owner.name, "uid": self._owner.uid}
            job["metadata"]["ownerReferences"] = [reference]
        container = next(each for each in pod["spec"]["containers"] if each["name"] == CONTAINER)
        # Kubernetes expands $(NAME) in arguments, and $$ is a dollar sign.
        container["args"] = [argument.replace("$", "$$") for argument in arguments]
        return job

    def is_that_of(self, job: JsonObject, arguments: Sequence[str]) -> bool:
        """Returns True if a Job at the API server has these arguments, and the owner with which it would be deleted."""
        metadata = job["metadata"]
        owners = {reference["uid"] for reference in metadata.get("ownerReferences") or []}
        has_owner = self._owner is None or self._owner.uid in owners
        return has_owner and (metadata.get("annotations") or {}).get(ARGUMENTS) == hash_of(arguments)

    def job_name(self, run: str) -> str:
        return f"{self.name}-{run}"


def hash_of(arguments: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(arguments)).encode()).hexdigest()[:32]
