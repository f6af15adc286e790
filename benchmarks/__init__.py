"""Benchmarks of KubeBeast on this machine, e.g. `python -m benchmarks.transport` and `python -m benchmarks.train`."""
