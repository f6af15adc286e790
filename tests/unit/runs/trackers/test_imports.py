"""A run without trackers of services imports none of their packages, and runs need no PyTorch."""

import subprocess
import sys

IMPORTS = """
import sys
import kubebeast_runs.log, kubebeast_runs.trackers.services.choice, kubebeast_runs.trackers.services.host
print(sorted({"wandb", "mlflow", "trackio", "torch"} & set(sys.modules)))
"""


def test_clients_of_services_are_imported_by_their_processes_only() -> None:
    assert subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout == "[]\n"
