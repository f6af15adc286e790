"""Profiling of a run: phases, traces of updates, and traces of steps."""
