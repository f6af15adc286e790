"""Threads of PyTorch in the programs of other systems."""

import os

import torch


def use_all_cores() -> None:
    """Sets one thread for each core that this process may use: one, unless a run is alone on the machine."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))
