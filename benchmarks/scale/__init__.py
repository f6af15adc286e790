"""Thousands of streams on one learner: `python -m benchmarks.scale`."""
