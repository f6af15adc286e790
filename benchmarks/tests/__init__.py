"""The benchmarks at their smallest, and what they compute from what they have seen."""
