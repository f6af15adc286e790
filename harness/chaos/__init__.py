"""Environments with numbered rows, a model that records the rows on which it is trained, and the books of a pool."""
