"""What is learnt, and how: the model, the losses, the optimizer."""

from dataclasses import dataclass
from typing import Literal

from kubebeast_learner.config.checks import require


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    model: Literal["auto", "shallow", "deep", "mlp"] = "auto"
    """Network: shallow or deep IMPALA convolutions for images, mlp for vectors; auto is shallow or mlp by shape."""
    use_lstm: bool = False
    """Put an LSTM between the torso and the heads."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Widths of the mlp's hidden layers."""
    initialisation: Literal["pytorch", "orthogonal"] = "pytorch"
    """Initial weights: PyTorch's defaults, which are TorchBeast's, or orthogonal ones with a nearly uniform policy."""

    def __post_init__(self) -> None:
        require(
            len(self.hidden_sizes) > 0 and min(self.hidden_sizes) > 0,
            "hidden_sizes",
            self.hidden_sizes,
            "needs at least one positive width",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    discounting: float = 0.99
    """Discount factor of the return, gamma."""
    baseline_cost: float = 0.5
    """Weight of the baseline loss."""
    entropy_cost: float = 0.0006
    """Weight of the entropy bonus."""
    reward_clipping: Literal["abs_one", "none"] = "abs_one"
    """abs_one clips every reward to [-1, 1] for the loss; logged returns are never clipped."""
    loss_reduction: Literal["sum", "mean"] = "sum"
    """Losses are summed (TorchBeast) or averaged over the valid transitions of [T, B]."""

    def __post_init__(self) -> None:
        require(0.0 <= self.discounting <= 1.0, "discounting", self.discounting, "must lie in [0, 1]")
        require(self.baseline_cost >= 0.0, "baseline_cost", self.baseline_cost, "must not be negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig:
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """Optimizer. alpha and momentum belong to rmsprop, epsilon to both."""
    learning_rate: float = 0.00048
    """Initial learning rate, annealed linearly to 0 over total_steps."""
    alpha: float = 0.99
    """RMSProp's smoothing constant."""
    momentum: float = 0.0
    """RMSProp's momentum."""
    epsilon: float = 0.01
    """Added to the denominator of the update."""
    grad_norm_clipping: float = 40.0
    """Largest global gradient norm; larger gradients are scaled down. 0 turns clipping off."""

    def __post_init__(self) -> None:
        require(self.learning_rate > 0.0, "learning_rate", self.learning_rate, "must be positive")
        require(self.epsilon > 0.0, "epsilon", self.epsilon, "must be positive")
        require(0.0 <= self.alpha < 1.0, "alpha", self.alpha, "must lie in [0, 1)")
        require(self.grad_norm_clipping >= 0.0, "grad_norm_clipping", self.grad_norm_clipping, "must not be negative")
