"""Playing with a trained model: evaluation, rendering, export. Also the trial of an environment before training."""
