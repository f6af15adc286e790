"""Interface of a process to its operating system, and the end of processes."""
