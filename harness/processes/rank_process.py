"""Several ranks in real processes, which find each other as torchrun's do."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 110.0


def start_ranks(
    num_ranks: int, module: str, *arguments: str, own: Mapping[int, Sequence[str]] | None = None
) -> list["subprocess.Popen[str]"]:
    """python -m module arguments, once for each rank, in the repository's root. own: further arguments of ranks."""
    common = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(num_ranks),
        "LOCAL_WORLD_SIZE": str(num_ranks),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error",
    }
    return [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments, *(own or {}).get(rank, ())],
            cwd=ROOT,
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(num_ranks)
    ]


def outputs(ranks: Sequence["subprocess.Popen[str]"]) -> list[str]:
    """What each has written; AssertionError where one failed."""
    try:
        texts = [rank.communicate(timeout=TIMEOUT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), "\n".join(texts)
    return texts
