"""The trials of a sweep, in a file."""
