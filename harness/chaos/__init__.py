"""Environments with numbered rows, a model that writes down which ones it is trained on, and the books of a pool."""
