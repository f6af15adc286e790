"""`kubebeast plot`: learning curves from the logs of runs, including those of TorchBeast."""
