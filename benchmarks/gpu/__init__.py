"""Use of the GPU by a learner, and the waiting times of its threads: `python -m benchmarks.gpu`."""
