"""Programs that run in the venv of a system: they train once and write a log as LogTable reads it."""
