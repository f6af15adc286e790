"""Measurements of KubeBeast on this machine: `python -m benchmarks.transport` and `python -m benchmarks.train`."""
