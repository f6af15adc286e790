"""Log and metrics of a native pool."""
