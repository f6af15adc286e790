"""The training loop, its process, and what others may know of it."""
