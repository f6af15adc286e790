"""Settings for every test of the benchmarks."""

from harness.pytest_settings import nameless_log_lines

__all__ = ["nameless_log_lines"]
