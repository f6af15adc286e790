"""Users' encoders, module:Class; docs/models.md states their contract, which is checked here on made-up rows."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.config import ConfigError, ModelConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import check_options, describe, load_object
from kubebeast_learner.models.contract import all_finite, require_copies
from kubebeast_learner.models.dummy import dummy_leaf
from kubebeast_learner.models.torsos.base import Torso

T, B = 3, 2
_TOLERANCE = 2e-2
"""Tolerance relative to the largest feature: rows round differently in another batch."""


class OwnEncoder(Torso):
    """A user's encoder, run in float32."""

    def __init__(self, net: nn.Module, name: str) -> None:
        super().__init__()
        self.net = net
        self.output_size = int(net.output_size)  # type: ignore[arg-type]
        self._name = name

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """See `Torso.describe`."""
        return [f"as {self._name} takes it" for _ in observation]

    def forward(self, rows: Tensor) -> Tensor:
        """Maps [T, B, *row_shape] to float32 [T, B, output_size]."""
        features: Tensor = self.net(rows)
        return features


def make_own_encoder(config: ModelConfig, path: str, leaf: LeafSpec) -> OwnEncoder:
    """Builds and checks the encoder that `config` has for the leaf it calls `path`.

    Raises ConfigError, which names the setting, if it cannot be loaded or built, or breaks the contract: types, shapes
    and dtypes; finite features and gradients; rows that do not mix; it can be copied.
    """
    name, options = config.encoders[path], parse_object("encoder_options", config.encoder_options).get(path, {})
    user_class = load_object("encoder", name)
    setting = f"encoder = {f'{path}={name}'!r}"
    if not (isinstance(user_class, type) and issubclass(user_class, nn.Module)):
        raise ConfigError(f"{setting}: must be a subclass of torch.nn.Module, it is {user_class!r}")
    check_options("encoder_options", config.encoder_options, user_class, 1, options)
    class_name = user_class.__name__
    try:
        net = user_class(leaf, **options)
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"{setting}: {class_name}(leaf) of {describe_leaf(leaf)}: {describe(error)}") from error
    was_training = net.training
    net.eval()  # dropout would make two calls differ
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            _check(net, leaf)
        except _BreachError as breach:
            raise ConfigError(f"{setting}: {class_name}{breach}") from breach.__cause__
    net.train(was_training)
    return OwnEncoder(net, class_name)


class _BreachError(Exception):
    """A violation of the contract; the message continues the encoder's name."""


def _check(net: nn.Module, leaf: LeafSpec) -> None:
    size = getattr(net, "output_size", None)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise _BreachError(f".output_size must be the number of its features, it is {size!r}")
    rows = dummy_leaf(leaf, (T, B), np.random.default_rng(0))
    features = _run(net, rows, size)
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    if parameters:
        if not features.requires_grad:
            raise _BreachError(": no gradient reaches a parameter; are the features detached, or made under no_grad?")
        if not all_finite(torch.autograd.grad(features.sum(), parameters, allow_unused=True)):
            raise _BreachError(": the gradient of the features is not finite")
    with torch.no_grad():
        alone = [[_run(net, rows[t : t + 1, b : b + 1], size)[0, 0] for b in range(B)] for t in range(T)]
        difference = (features - torch.stack([torch.stack(row) for row in alone])).abs().max()
        if difference > _TOLERANCE * features.abs().max():
            raise _BreachError(
                f": a row in a batch has other features than alone, by {float(difference):.3g}: dimension 0 is time, "
                "dimension 1 the environment, and no row may see another"
            )
    require_copies(net, "", _BreachError)


def _run(net: nn.Module, rows: Tensor, size: int) -> Tensor:
    """Returns the features of rows [T, B, *row_shape] and checks their type, shape, dtype and finiteness."""
    call = f".forward of {str(rows.dtype).removeprefix('torch.')} {list(rows.shape)}"
    try:
        features = net(rows)
    except Exception as error:
        raise _BreachError(f"{call} failed: {describe(error)}") from error
    wanted = [*rows.shape[:2], size]
    if not isinstance(features, Tensor) or features.dtype != torch.float32 or list(features.shape) != wanted:
        what = f"{features.dtype} {list(features.shape)}" if isinstance(features, Tensor) else type(features).__name__
        raise _BreachError(f"{call} must return float32 {wanted}, it returned {what.removeprefix('torch.')}")
    if not features.isfinite().all():
        raise _BreachError(f"{call}: the features must be finite")
    return features
