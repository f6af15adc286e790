"""Tests of the benchmarks at their smallest sizes, and of their computations."""
