"""What runs in the venv of a peer: training without end, and a JSON line with `step` now and then."""
