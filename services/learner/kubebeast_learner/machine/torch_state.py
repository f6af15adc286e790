"""Isolation of torch's settings per process or thread between environments and models that share it.

A learned simulator may set another default dtype, seed torch at each reset or enable gradients. With this isolation,
settings of environments do not change the results of models, and environments find their own settings unchanged, as in
an env-server, which has no models.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

_CPU = torch.device("cpu")


class _Settings(NamedTuple):
    dtype: torch.dtype
    device: torch.device
    num_threads: int
    has_gradients: bool
    is_deterministic: bool
    warns_only: bool
    finds_anomalies: bool
    has_autocast: bool


class _Environments:
    """Settings that environments have left. One per process, as their modules may have changed settings on import."""

    settings: _Settings | None = None
    rng_state: Tensor | None = None
    """State of their random numbers; None until they have seeded torch."""


@contextlib.contextmanager
def of_environments() -> Iterator[None]:
    """Context of environments: applies the settings that they left in the last one, and restores ours at its end.

    The first context begins with the current settings. Random numbers are torch's own, shared with models, until
    environments seed them. For one thread of a process.
    """
    ours, seed = _read(), torch.initial_seed()
    if _Environments.settings is not None:
        _change(ours, _Environments.settings)
    rng_state = None if _Environments.rng_state is None else torch.get_rng_state()
    if _Environments.rng_state is not None:
        torch.set_rng_state(_Environments.rng_state)
    try:
        yield
    finally:
        _Environments.settings = _read()
        _change(_Environments.settings, ours)
        if rng_state is not None:
            _Environments.rng_state = torch.get_rng_state()
            torch.set_rng_state(rng_state)
        elif torch.initial_seed() != seed:
            _Environments.rng_state = torch.get_rng_state()
            torch.manual_seed(seed)


def _read() -> _Settings:
    has_mode = torch._C._len_torch_function_stack() > 0  # a default device is a mode; reading it takes 8 µs
    return _Settings(
        dtype=torch.get_default_dtype(),
        device=torch.get_default_device() if has_mode else _CPU,
        num_threads=torch.get_num_threads(),
        has_gradients=torch.is_grad_enabled(),
        is_deterministic=torch.are_deterministic_algorithms_enabled(),
        warns_only=torch.is_deterministic_algorithms_warn_only_enabled(),
        finds_anomalies=torch.is_anomaly_enabled(),
        has_autocast=torch.is_autocast_enabled("cpu"),
    )


def _change(now: _Settings, wanted: _Settings) -> None:
    if now == wanted:
        return
    torch.set_default_dtype(wanted.dtype)
    torch.set_default_device(None if wanted.device.type == "cpu" else wanted.device)
    torch.set_num_threads(wanted.num_threads)
    torch.set_grad_enabled(wanted.has_gradients)
    torch.use_deterministic_algorithms(wanted.is_deterministic, warn_only=wanted.warns_only)
    torch.autograd.set_detect_anomaly(wanted.finds_anomalies)
    torch.set_autocast_enabled("cpu", wanted.has_autocast)
