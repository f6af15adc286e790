"""All measurements in sequence, within a given time."""

import resource
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from kubebeast_common.process.cpu_time import read_cpu_time
from kubebeast_learner.config import TrainConfig
from kubebeast_learner.config.checks import require
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.training.build import assemble_model
from kubebeast_learner.training.deciding import decide
from kubebeast_learner.tune import fleet_probe, learner_probe
from kubebeast_learner.tune.output import Output
from kubebeast_learner.tune.pieces import Pieces

FLEET_SHARE = 0.3
"""Share of the time for the env-server with one environment, and with MANY."""
MANY = 16


def measure(
    config: TrainConfig,
    output: Output,
    open_address: Callable[[], AbstractContextManager[str]],
    folder: Path,
    seconds: float,
) -> tuple[Pieces, TrainConfig]:
    """Measures the pieces of a training with `config`, and returns its settings, too. Raises ConfigError,
    ActorsError.

    Args:
        open_address: Opens a new address that an env-server of this machine may dial.
        folder: Folder of its log.
        seconds: Duration of all measurements together, without startup.
    """
    keep_freed_memory()
    others = _Others()
    cores, threads = num_cores(), config.run.learner_threads
    require(threads <= cores, "learner_threads", threads, f"there are {cores} cores")
    unit = fleet_probe.unit_of(config)
    servers = []
    for num_envs in (unit, MANY * unit):
        share_s = seconds * FLEET_SHARE / 2
        text = f"an env-server with {num_envs} environment{'s' * (num_envs > 1)}"
        with output.measuring(text, share_s), open_address() as address:
            cost, spec = fleet_probe.measure(config, address, folder, num_envs, share_s)
        servers.append(cost)
    config = decide(config, spec)
    model = assemble_model(config, spec, is_named=True)
    setups = learner_probe.setups(config, model, cores)
    learners = []
    for setup in setups:
        share_s = seconds * (1 - FLEET_SHARE) / len(setups)
        with output.measuring(f"update and inference: {setup}", share_s):
            learners.append(learner_probe.measure(config, spec, setup, share_s))
    pieces = Pieces(
        cores=cores,
        env_servers=servers,
        learners=learners,
        steps_per_update=config.steps_per_batch,
        unit=unit,
        cores_used_by_others=others.cores_used(),
    )
    return pieces, config


class _Others:
    """CPU time of other processes from now on: neither of this one nor of its ended children."""

    def __init__(self) -> None:
        self._began, self._used_s = time.monotonic(), self._used()

    def cores_used(self) -> float:
        """Returns the average; 0 if the system does not report CPU time."""
        return max(0.0, (self._used() - self._used_s) / (time.monotonic() - self._began))

    def _used(self) -> float:
        everybody = read_cpu_time()
        if everybody is None:
            return 0.0
        ours = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return everybody.used_s - sum(each.ru_utime + each.ru_stime for each in ours)
