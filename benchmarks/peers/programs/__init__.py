"""Programs that run in the venv of a peer: they train endlessly and print a JSON line with `step` from time to time."""
