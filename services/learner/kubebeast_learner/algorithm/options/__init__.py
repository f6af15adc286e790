"""Ways to learn more from each step: each is one file, and plain V-trace without it."""
