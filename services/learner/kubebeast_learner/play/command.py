"""`kubebeast eval`: plays one checkpoint, or every new one of a run during its training."""

import torch

from kubebeast_learner.config import EvalConfig
from kubebeast_learner.play import evaluate
from kubebeast_learner.play.follow.command import follow


def run(config: EvalConfig) -> int:
    """Runs the command. Returns the exit status. Raises ConfigError if there is nothing to play."""
    torch.set_num_threads(1)  # a few rows are too little work for several threads
    return follow(config) if config.follow else evaluate.run(config)
