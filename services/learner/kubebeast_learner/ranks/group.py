"""Process group of all ranks, and collectives over it.

torch.distributed has one group per process, and so do these functions. Without a group they return their inputs, so
that a sum over one batch and a sum over the batches of all ranks have the same code.
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
from kubebeast_learner.machine.out_of_memory import is_out_of_memory
from kubebeast_learner.ranks.deadline import DeadlineError, deadline
from kubebeast_learner.ranks.place import Place

ValueT = TypeVar("ValueT")
_GLOO = "gloo"
"""Text in the errors of Gloo's connections, which begin with a source file; they have no type of their own."""


_timeout_s = 0.0
"""Timeout of the open group, in seconds."""


class RankLostError(RuntimeError):
    """Another rank is gone, or was silent for too long: no rank can continue."""


@contextlib.contextmanager
def open_group(place: Place, device: torch.device, timeout_s: float) -> Iterator[None]:
    """Connects to the other ranks at MASTER_ADDR and MASTER_PORT; opens no group for a single rank.

    Gloo transfers tensors on CPUs, NCCL those on GPUs. `timeout_s` is the longest time that a collective waits for a
    rank. NCCL's own timeout would end the process, so it is disabled and `ending_waits` replaces it. The device becomes
    the current one of this thread. Raises ConfigError if the ranks do not connect.
    """
    global _timeout_s
    if device.type == "cuda" and device.index is not None:
        # Otherwise pinned memory and streams would use the first GPU, which may belong to another rank.
        torch.cuda.set_device(device)
    if place.is_alone:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    # https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
    os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    _timeout_s = timeout_s
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
    """Returns the store of the ranks' addresses, without addresses from before a restart by torchrun.

    One store serves all restarts of an agent, https://github.com/pytorch/pytorch/issues/135712. Several agents count
    restarts independently, so the number is no key for them; TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 solves that case.
    """
    store: Store = next(rendezvous("env://", timeout=timeout))[0]
    if os.environ.get("GROUP_WORLD_SIZE") != "1":
        return store
    return PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def sum_over_ranks(values: Tensor) -> Tensor:
    """Returns the sum of a tensor over all ranks, without gradient. All ranks must call it."""
    if not dist.is_initialized():
        return values
    total = values.detach().clone()
    with naming_lost_ranks():
        dist.all_reduce(total)
    return total


def gather(value: ValueT) -> list[ValueT]:
    """Returns the values of all ranks, in order. All ranks must call it, with plain values, which are pickled."""
    if not dist.is_initialized():
        return [value]
    values: list[ValueT | None] = [None] * dist.get_world_size()
    with naming_lost_ranks():
        dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def first_ranks(value: ValueT) -> ValueT:
    """Returns the first rank's value, on every rank. Values are plain, or tensors on the CPU, as they are pickled."""
    if not dist.is_initialized():
        return value
    values = [value]
    with naming_lost_ranks():
        dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
    return values[0]


@contextlib.contextmanager
def naming_lost_ranks() -> Iterator[None]:
    """Context of collectives only: their errors for a lost rank become RankLostError."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise lost_rank(error) from error


def lost_rank(error: Exception) -> RankLostError:
    """Returns the RankLostError for an error of a collective."""
    reason = str(error).partition("\n")[0]
    return RankLostError(f"another rank is gone or was silent for too long: {reason}")


def is_of_group(error: RuntimeError) -> bool:
    """Returns True if an error is of the process group, for code that can raise others, too."""
    if not dist.is_initialized() or is_out_of_memory(error):
        return False
    return isinstance(error, dist.DistError) or _GLOO in str(error)


@contextlib.contextmanager
def ending_waits(device: torch.device) -> Iterator[None]:
    """Context of work that waits for collectives on `device`: raises RankLostError after the timeout.

    Gloo's collectives have a timeout. A GPU waits for kernels of NCCL, which wait for the other ranks without one: they
    end with the process group, which is unusable afterwards, while all data on the GPU can still be read.
    """
    if not waits_without_end(device):
        yield
        return
    try:
        with deadline(_timeout_s, abort_group):
            yield
    except DeadlineError as error:
        raise lost_rank(error) from error


def waits_without_end(device: torch.device) -> bool:
    """Returns True if waits for collectives on `device` have no other timeout."""
    return device.type == "cuda" and dist.is_initialized()


def abort_group() -> None:
    """Ends all collectives of this process, from any thread."""
    dist.distributed_c10d._abort_process_group()
