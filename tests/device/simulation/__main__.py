"""The command `kubebeast` on a machine with simulated GPUs: python -m tests.device.simulation COMMAND ARGUMENT ...

The variable SIMULATED_GPUS is the number of GPUs. The findings are written to a JSON file of the folder
SIMULATION_FINDINGS at the end of the process.
"""

import atexit
import json
import os
from pathlib import Path

from kubebeast_common.cli.console import main
from tests.device.simulation.findings import found
from tests.device.simulation.gpus import install


def write_findings(folder: Path) -> None:
    (folder / f"{os.getpid()}.json").write_text(json.dumps(found.as_dict()))


if __name__ == "__main__":  # processes that it starts import this file
    install(int(os.environ["SIMULATED_GPUS"]))
    atexit.register(write_findings, Path(os.environ["SIMULATION_FINDINGS"]))
    main()
