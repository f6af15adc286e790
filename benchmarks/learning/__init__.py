"""Returns that systems learn in a number of steps, minutes and CPU seconds: `python -m benchmarks.learning`."""
