"""The process group of all ranks, and what is summed and told over it.

torch.distributed keeps one group for a process, and so do these functions: without a group they change nothing, so that
a sum over one batch and a sum over the batches of all ranks are written alike.
"""

import contextlib
import datetime
import os
from collections.abc import Iterator
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from kubebeast_learner.config import ConfigError
from kubebeast_learner.ranks.place import Place

ValueT = TypeVar("ValueT")


class RankLostError(RuntimeError):
    """Another rank is gone, or was silent for too long: none can go on."""


@contextlib.contextmanager
def open_group(place: Place, device: torch.device, timeout_s: float) -> Iterator[None]:
    """Meets the other ranks where MASTER_ADDR and MASTER_PORT say; nothing where this one is alone.

    Gloo carries what lies on CPUs, NCCL what lies on GPUs. timeout_s: longest that any collective waits for a rank;
    ConfigError when they do not meet. The device is this thread's current one from now on.
    """
    if device.type == "cuda" and device.index is not None:
        # Else pinned memory and streams would take a part of the first GPU, which may be another's.
        torch.cuda.set_device(device)
    if place.is_alone:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    timeout = datetime.timedelta(seconds=timeout_s)
    try:
        store = _store_of_this_start(timeout)
        dist.init_process_group(backend, timeout=timeout, store=store, rank=place.rank, world_size=place.num_ranks)
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"the {place.num_ranks} ranks did not meet: {error}") from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def _store_of_this_start(timeout: datetime.timedelta) -> Store:
    """Where the ranks find each other's addresses, without those of ranks that torchrun has started again since.

    One store serves all restarts of an agent, https://github.com/pytorch/pytorch/issues/135712. Several agents count
    restarts each for itself, so there the number says nothing; TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 helps them.
    """
    store: Store = next(rendezvous("env://", timeout=timeout))[0]
    if os.environ.get("GROUP_WORLD_SIZE") != "1":
        return store
    return PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def sum_over_ranks(values: Tensor) -> Tensor:
    """The sum of the same tensor of every rank, which all of them must ask for; its gradient is not followed."""
    if not dist.is_initialized():
        return values
    total = values.detach().clone()
    with naming_lost_ranks():
        dist.all_reduce(total)
    return total


def gather(value: ValueT) -> list[ValueT]:
    """The value of every rank, which all of them must ask for; plain values, as they are pickled."""
    if not dist.is_initialized():
        return [value]
    values: list[ValueT | None] = [None] * dist.get_world_size()
    with naming_lost_ranks():
        dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def first_ranks(value: ValueT) -> ValueT:
    """The first rank's value, on every rank; plain values and tensors on the CPU, as they are pickled."""
    if not dist.is_initialized():
        return value
    values = [value]
    with naming_lost_ranks():
        dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
    return values[0]


@contextlib.contextmanager
def naming_lost_ranks() -> Iterator[None]:
    """Around collectives: what they raise when a rank is gone becomes RankLostError."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise RankLostError(f"another rank is gone or was silent for too long: {reason}") from error
