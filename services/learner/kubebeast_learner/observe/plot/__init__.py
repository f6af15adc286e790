"""`kubebeast plot`: learning curves from the logs of runs, those of TorchBeast included."""
