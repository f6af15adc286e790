"""Drivers of real learners, env-servers and fleets, with accounts of their steps, for tests and benchmarks."""
