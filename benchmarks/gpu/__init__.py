"""How busy a learner keeps its GPU, and what waits for what: `python -m benchmarks.gpu`."""
