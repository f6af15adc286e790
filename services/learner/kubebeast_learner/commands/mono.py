"""Process of `kubebeast mono`: training on one machine."""

from kubebeast_learner.actors.mono.actors import MonoActors
from kubebeast_learner.actors.mono.parts import num_busy_processes
from kubebeast_learner.config import MonoConfig
from kubebeast_learner.training import run as training
from kubebeast_learner.training.process import open_process
from kubebeast_learner.training.run import open_run


def train(config: MonoConfig) -> int:
    """Runs `kubebeast mono`: the learner and its actor processes. Returns the exit status."""
    with open_process(config) as process:
        is_done = False
        while not is_done:
            with (
                open_run(process, num_local_processes=num_busy_processes) as run,
                MonoActors(
                    run.config, run.log.folder, run.checkpoint.env_statistics if run.checkpoint else (), run.levels
                ) as actors,
            ):
                is_done = training.train(run, actors)
    return process.exit_status
