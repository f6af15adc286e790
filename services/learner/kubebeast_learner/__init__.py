"""KubeBeast's learner: the model, V-trace, the training loop and the `kubebeast` command."""

from importlib.metadata import version

__version__ = version("kubebeast-learner")
