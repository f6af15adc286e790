"""Names of files that several parts of this package know."""

META = "meta.json"
CHECKPOINTS = "checkpoints.json"
"""Scores of the checkpoints in their training."""
CONFIG = "config.yaml"
LATEST = "latest"
"""Alias of the run that began last: savedir has a file of this name that contains the run's name."""
