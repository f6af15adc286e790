"""Log and metrics of a native pool, whoever learns from it."""
