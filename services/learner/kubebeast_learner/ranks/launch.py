"""Several ranks on this machine, started and watched by torchrun's own agent."""

import sys
import uuid
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def launch(num_ranks: int, words: Sequence[str]) -> int:
    """Runs `kubebeast words` in num_ranks processes until all have ended. Returns the exit status.

    When one fails the others are ended. SIGINT and SIGTERM are handed on, and all save and end within 30 s.
    """
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "kubebeast_learner", *words)
    except SignalException:
        return 0
    except ChildFailedError as error:
        return max(1, error.get_first_failure()[1].exitcode)
    return 0
