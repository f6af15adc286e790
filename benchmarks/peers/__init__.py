"""Other systems at the same work: `python -m benchmarks.peers`."""
