"""Resources of the machine that runs a training."""
