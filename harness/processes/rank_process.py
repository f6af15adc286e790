"""Several ranks in real processes, which find each other by the environment variables of torchrun."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.ports import free_port
from harness.processes import warm_start

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300.0


Rank = subprocess.Popen[str] | warm_start.Process


def start_ranks(
    num_ranks: int, module: str, *arguments: str, own: Mapping[int, Sequence[str]] | None = None
) -> list[subprocess.Popen[str]]:
    """Starts `python -m MODULE ARGUMENTS` for each rank, in the repository's root.

    Args:
        own: Additional arguments by rank.
    """
    return [
        subprocess.Popen(
            [*words, *(own or {}).get(rank, ())],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, (words, variables) in enumerate(_of_ranks(num_ranks, module, arguments))
    ]


def start_warm_ranks(num_ranks: int, module: str, *arguments: str) -> list[warm_start.Process]:
    """Starts ranks like start_ranks, but with torch already imported; the module must turn warnings into errors."""
    return [
        warm_start.Process(words, cwd=ROOT, env=variables)
        for words, variables in _of_ranks(num_ranks, module, arguments)
    ]


def outputs(ranks: Sequence[Rank]) -> list[str]:
    """Waits for all ranks and returns their outputs; raises AssertionError if one failed."""
    with contextlib.ExitStack() as stack:
        for rank in ranks:
            stack.enter_context(rank)
        try:
            texts = ["".join(filter(None, rank.communicate(timeout=TIMEOUT_S))) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), "\n".join(texts)
    return texts


def _of_ranks(num_ranks: int, module: str, arguments: Sequence[str]) -> list[tuple[list[str], dict[str, str]]]:
    """Returns the command and the environment variables of each rank."""
    common = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(num_ranks),
        "LOCAL_WORLD_SIZE": str(num_ranks),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error",
    }
    words = [sys.executable, "-m", module, *arguments]
    return [(words, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(num_ranks)]
