"""Entry point of `kubebeast publish`: writes the folder, and pushes it if that is wanted."""

from pathlib import Path

from rich.console import Console

from kubebeast_learner.config import PublishConfig
from kubebeast_learner.publish.folder import write_folder
from kubebeast_learner.publish.hub import PushError, push
from kubebeast_learner.run.checkpoint import CheckpointError
from kubebeast_learner.run.initial_weights import find_state


def run(config: PublishConfig) -> int:
    """Runs the command. Returns the exit status. Raises ConfigError if there is no model or no place to write to.

    Raises ModuleNotFoundError without the packages of the extra `hub`.
    """
    try:
        found = find_state("run", config.run, config.savedir)
        name = config.to_hub.partition("/")[2] or found.folder.name
        out = (config.out or Path(f"{name}-model")).expanduser()
        names, scores = write_folder(config, found, out, name)
        print(f"{out}: {', '.join(names)}; made of {found.place}")
        for score in scores:
            source = f"{score.num_episodes} episodes of {score.origin}"
            print(f"mean return in {score.env_id}: {score.mean:.2f} ± {score.std:.2f}, {source}")
        if config.to_hub:
            print(f"pushed: {push(out, names, config.to_hub, private=config.private)}")
    except (CheckpointError, PushError) as error:
        Console(stderr=True).print(f"kubebeast publish: {error}", markup=False, soft_wrap=True)
        return 1
    return 0
