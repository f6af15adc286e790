"""Launch of several ranks on this machine by torchrun's agent."""

import signal
import sys
import uuid
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from kubebeast_common.process.leaving import INTERRUPTED

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals that torchrun forwards."""


def launch(num_ranks: int, words: Sequence[str]) -> int:
    """Runs `kubebeast words` in num_ranks processes until all have ended. Returns the exit status.

    If one fails, the others are ended. SIGINT, SIGTERM and, unless it is ignored, SIGHUP are forwarded, and all
    processes save and end within 30 s.
    """
    signals = [name for name in SIGNALS if signal.getsignal(signal.Signals[name]) != signal.SIG_IGN]
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )
    if hasattr(config, "signals_to_handle"):  # from PyTorch 2.9 on
        config.signals_to_handle = ",".join(signals)
    try:
        # -P: a file in the working directory may have the name of a standard module.
        elastic_launch(config, sys.executable)("-P", "-m", "kubebeast_learner", *words)
    except SignalException as end:
        return INTERRUPTED if end.sigval == signal.SIGINT else 0
    except ChildFailedError as error:
        return max(1, error.get_first_failure()[1].exitcode)
    return 0
