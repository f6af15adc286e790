"""Ways to run an update: compiled, or as a CUDA graph."""
