"""`kubebeast eval`: one checkpoint, or every one of a run while it is trained."""

import torch

from kubebeast_learner.config import EvalConfig
from kubebeast_learner.play import evaluate
from kubebeast_learner.play.follow.command import follow


def run(config: EvalConfig) -> int:
    """The command. Returns the exit status; ConfigError when there is nothing that could play."""
    torch.set_num_threads(1)  # a handful of rows is too little to share; threads would only wait for each other
    return follow(config) if config.follow else evaluate.run(config)
