"""Runs of a sweep as Jobs of Kubernetes."""

import functools

from kubebeast_common.settings import ConfigError
from kubebeast_observe.errors import WatchError
from kubebeast_observe.fleet.connection import connect
from kubebeast_observe.settings import ClusterConfig
from kubebeast_sweep.jobs.run_job import RunJob
from kubebeast_sweep.jobs.run_jobs import RunJobs
from kubebeast_sweep.jobs.template import JobTemplate, Owner
from kubebeast_sweep.settings import SweepConfig
from kubebeast_sweep.training_run import Launch


def launcher(config: SweepConfig) -> Launch:
    """Returns the function that starts runs as Jobs of the setting. Raises ConfigError."""
    assert config.job_template is not None
    owner = Owner(*config.job_owner.split("/")) if config.job_owner else None
    template = JobTemplate(config.job_template, owner)
    try:
        return functools.partial(RunJob, RunJobs(connect(ClusterConfig()), template))
    except WatchError as error:
        raise ConfigError(f"job_template = '{config.job_template}': {error}") from error
