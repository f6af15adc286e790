"""The line that benchmarks.peers.measure reads."""

import json


def report(step: int) -> None:
    """Prints a line; `step` is the number of env-steps that the weights were trained on so far."""
    print(json.dumps({"step": step}), flush=True)
