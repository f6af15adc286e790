"""Log, metrics and limits of a native pool."""
