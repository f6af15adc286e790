"""Several learners for one model: `python -m benchmarks.ranks` and `python -m benchmarks.ranks.kills`."""
