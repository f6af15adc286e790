"""The training loop, its process, and its state for other threads."""
