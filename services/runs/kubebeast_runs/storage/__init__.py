"""Storages: the places of files that a run writes whole, such as its checkpoints."""
