"""Comparison with other training systems: `python -m benchmarks.peers`."""
