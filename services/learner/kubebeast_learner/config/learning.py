"""Settings of the model, the loss, the optimizer and the replay."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kubebeast_learner.config.checks import (
    JsonObject,
    parse_object,
    require,
    require_at_least,
    require_positive,
)

Schedule = Literal["constant", "linear", "cosine"]
InputChoice = Literal["auto", "on", "off"]
BoundedActions = Literal["tanh", "clip"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutConfig:
    """Shape of a training batch, [T, B]."""

    unroll_length: int = 80
    """Transitions in an unroll (T)."""
    batch_size: int = 8
    """Unrolls in a training batch (B)."""
    wait_for_updates: bool = False
    """Let the environments wait during updates, so that data are from the newest weights, for several passes over each
    batch; env-servers that are ahead of others begin their next unrolls before it is full. With more environments than
    fresh unrolls in a batch, some unrolls serve later updates, so give batch_size that number. Without it, the next
    batch is played meanwhile. A run with a lag keeps that lag."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "unroll_length", "batch_size")

    def waits(self, lag: int | None) -> bool:
        """Returns True if environments wait during updates: with a lag of 0, and without a lag if they should."""
        return self.wait_for_updates if lag is None else lag == 0

    def keeps_cores(self, lag: int | None) -> bool:
        """Returns True if the processes of environments have cores to themselves.

        Not if they wait during updates; nor with a lag, as the threads of an operation determine the order of its sums,
        and the number of processes must not change a result.
        """
        return lag is None and not self.wait_for_updates


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Network that selects actions and is trained."""

    model: str = "auto"
    """Network: shallow or deep IMPALA convolutions for images, with an encoder for every other leaf; mlp flattens all
    leaves; auto is shallow if there is an image, else mlp. module:Class is a torch module of your own, to which the
    settings below do not apply, except model_options."""
    model_options: JsonObject = "{}"
    """JSON object: arguments of a model of your own, by name."""
    encoder: tuple[str, ...] = ()
    """Encoders of your own, LEAF=module:Class each: torch modules for single leaves of the observation. LEAF is the
    path of the leaf as in the log, or "." if there is only one."""
    encoder_options: JsonObject = "{}"
    """JSON object: for each LEAF of encoder, an object with the arguments of its class, by name."""
    image_layout: tuple[str, ...] = ()
    """Axes of leaves, LEAF=AXES each, if their shapes are ambiguous: hwc, chw, khwc (h rows, w columns, c channels, k
    frames of a stack), or flat for a vector."""
    use_lstm: bool = False
    """Put an LSTM between the torso and the heads."""
    reward_input: InputChoice = "auto"
    """Feed the last reward, clipped to [-1, 1], to the network; auto does so for shallow and deep."""
    last_action_input: InputChoice = "auto"
    """Feed the last action, choices one-hot, to the network; auto does so for shallow."""
    task_input: bool = False
    """Feed the task, one-hot, to the network if task_shares names several."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Widths of the mlp's hidden layers."""
    separate_baseline: bool = False
    """Give the value head a torso and an LSTM of its own, so that returns do not shape the features of the policy."""
    normalise_observations: bool = False
    """Normalize float leaves to mean 0 and variance 1 for the network, by running statistics of the training data,
    which are part of the weights."""
    normalise_images: bool = False
    """Normalize each pixel of the images of bytes that shallow, deep or small convolutions read, by running statistics:
    what moves stands out from what never changes. Models and encoders of your own get the bytes."""
    normalise_off_scale: bool = False
    """Normalize only what is far from the scale of 1 in the first batch: numbers, images of floats or integers, and
    images of few cells with small bytes. Models and encoders of your own get the observation as it is."""
    normalise_values: bool = False
    """Train the value head on targets of mean 0 and variance 1 (PopArt), by running statistics that are part of the
    weights, and divide advantages by the same scale, so that returns of any magnitude are learned alike."""
    bounded_actions: BoundedActions = "clip"
    """Bounding of an action's numbers: clip a normal distribution, or squash it by tanh."""
    log_std_init: float = 0.0
    """Initial log standard deviation of an action's numbers; bounded ones range from -1 to 1."""
    initialisation: Literal["pytorch", "orthogonal"] = "pytorch"
    """Initial weights: PyTorch's defaults, as in TorchBeast, or orthogonal ones with a nearly uniform policy."""

    def __post_init__(self) -> None:
        _require_choice("model", self.model, ("auto", "shallow", "deep", "mlp"), "module:Class")
        require(
            len(self.hidden_sizes) > 0 and min(self.hidden_sizes) > 0,
            "hidden_sizes",
            self.hidden_sizes,
            "needs at least one positive width",
        )
        _require_own("model_options", self.model_options, self.model, "model", "auto, shallow, deep and mlp have none")
        self._check_leaves()

    @property
    def encoders(self) -> Mapping[str, str]:
        """Map from LEAF to module:Class."""
        return _by_leaf("encoder", self.encoder, _OBJECT, "module:Class")

    @property
    def image_layouts(self) -> Mapping[str, str]:
        """Map from LEAF to its axes, or to "flat"."""
        return _by_leaf("image_layout", self.image_layout, _AXES, "AXES, e.g. hwc, chw, khwc or flat")

    @property
    def own_code(self) -> Sequence[str]:
        """Settings that name code to import, for messages: "model = 'nets:Net'"; empty for built-in networks."""
        model = [f"model = {self.model!r}"] if ":" in self.model else []
        return [*model, *(f"encoder = {encoder!r}" for encoder in self.encoder)]

    def _check_leaves(self) -> None:
        for name in ("encoder", "image_layout"):
            value = getattr(self, name)
            require(not value or ":" not in self.model, name, value, f"model = {self.model!r} takes all leaves itself")
        no_images = len(self.image_layouts) > 0 and self.model == "mlp"
        require(not no_images, "image_layout", self.image_layout, "model = 'mlp' flattens all leaves: take auto")
        encoders = self.encoders
        for leaf, options in parse_object("encoder_options", self.encoder_options).items():
            require(leaf in encoders, "encoder_options", leaf, "encoder names no such leaf")
            require(isinstance(options, dict), "encoder_options", options, f"must be a JSON object, that of {leaf}")


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """Loss of the training: the costs, the clipping and the discounts of IMPALA."""

    loss: str = "impala"
    """Loss: impala, or a function of your own, module:function, which receives these settings."""
    loss_options: JsonObject = "{}"
    """JSON object: further arguments of a loss of your own, by name."""
    discounting: float = 0.99
    """Discount factor of the return, gamma."""
    baseline_cost: float = 0.5
    """Weight of the baseline loss."""
    entropy_cost: float = 0.0006
    """Weight of the entropy bonus, at step 0."""
    entropy_schedule: Schedule = "constant"
    """Schedule of the entropy bonus's weight, from entropy_cost to entropy_cost_final over schedule_steps."""
    entropy_cost_final: float = 0.0
    """Weight of the entropy bonus after schedule_steps, unless the schedule is constant."""
    reward_scale: float = 1.0
    """Factor of rewards in the loss, applied before they are clipped; logged returns are not scaled."""
    reward_clipping: Literal["abs_one", "soft_asymmetric", "none"] = "abs_one"
    """Clipping of rewards in the loss: abs_one clips to [-1, 1], soft_asymmetric squashes into (-1.5, 5); logged
    returns are not clipped."""
    normalise_advantages: bool = False
    """Shift and scale the advantages of each batch to mean 0 and variance 1."""
    loss_reduction: Literal["sum", "mean"] = "sum"
    """Reduction of the losses over the valid transitions of [T, B]: the sum, as in TorchBeast, or the mean."""
    clip_rho_threshold: float | None = 1.0
    """Largest importance weight of a temporal difference, rho bar of V-trace; None disables clipping."""
    clip_c_threshold: float | None = 1.0
    """Largest importance weight of a trace coefficient, c bar of V-trace; None disables clipping."""
    clip_pg_rho_threshold: float | None = 1.0
    """Largest importance weight of the policy gradient; None disables clipping."""
    clip_policy_ratio: float | None = None
    """PPO's epsilon: a transition moves the policy only until its action is 1 - epsilon or 1 + epsilon times as likely
    as when it was taken; None disables clipping. For transitions that are trained on many times (replay_share)."""
    vtrace_lambda: float = 1.0
    """Discount of the trace coefficients, lambda of V-trace: 1 gives n-step returns, 0 one-step targets."""

    def __post_init__(self) -> None:
        _require_choice("loss", self.loss, ("impala",), "module:function")
        _require_own("loss_options", self.loss_options, self.loss, "loss", "impala has none")
        for name in ("discounting", "vtrace_lambda"):
            value = getattr(self, name)
            require(0.0 <= value <= 1.0, name, value, "must lie in [0, 1]")
        require_at_least(0, self, "baseline_cost", "entropy_cost", "entropy_cost_final")
        require_positive(self, "reward_scale")
        for name in ("clip_rho_threshold", "clip_c_threshold", "clip_pg_rho_threshold", "clip_policy_ratio"):
            value = getattr(self, name)
            require(value is None or value >= 0.0, name, value, "must not be negative; None does not clip")


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig:
    """Optimizer, and schedule of the learning rate."""

    optimizer: str = "rmsprop"
    """Optimizer: rmsprop, adam, or a subclass of torch.optim.Optimizer, module:Class, e.g. torch.optim:AdamW. alpha and
    momentum apply to rmsprop, epsilon to rmsprop and adam."""
    optimizer_options: JsonObject = "{}"
    """JSON object: arguments of an optimizer module:Class, by name, in addition to the parameters and the learning
    rate."""
    learning_rate: float = 0.00048
    """Learning rate at the start of the schedule, before the factor of the warm-up."""
    learning_rate_schedule: Schedule = "linear"
    """Schedule of the learning rate, from learning_rate to learning_rate_final over schedule_steps."""
    learning_rate_final: float = 0.0
    """Learning rate after schedule_steps, unless the schedule is constant."""
    learning_rate_warmup_steps: int = 0
    """Env-steps over which the learning rate rises from 0; the schedule nevertheless starts at step 0."""
    alpha: float = 0.99
    """Smoothing constant of RMSProp."""
    momentum: float = 0.0
    """Momentum of RMSProp."""
    epsilon: float = 0.01
    """Term added to the denominator of the update."""
    grad_norm_clipping: float = 40.0
    """Largest global gradient norm; larger gradients are scaled down. 0 disables clipping."""

    def __post_init__(self) -> None:
        _require_choice("optimizer", self.optimizer, ("rmsprop", "adam"), "module:Class")
        reason = f"those of {self.optimizer} are settings, torch.optim:RMSprop and torch.optim:Adam take all"
        _require_own("optimizer_options", self.optimizer_options, self.optimizer, "optimizer", reason)
        require_positive(self, "learning_rate", "epsilon")
        require(0.0 <= self.alpha < 1.0, "alpha", self.alpha, "must lie in [0, 1)")
        names = ("momentum", "learning_rate_final", "learning_rate_warmup_steps", "grad_norm_clipping")
        require_at_least(0, self, *names)


@dataclass(frozen=True, kw_only=True, slots=True)
class PassesConfig:
    """Gradient steps on one training batch."""

    passes: int = 1
    """Times that each training batch is trained on, with value targets and advantages of the present weights;
    clip_policy_ratio bounds how far several of them move the policy."""
    minibatches: int = 1
    """Parts of a training batch, with one gradient step each, in every pass: random transitions of all unrolls, at most
    unroll_length parts; or, if the network has a memory or the loss is your own, whole unrolls, at most batch_size."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "passes", "minibatches")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayConfig:
    """Replay of unrolls that were trained on before."""

    replay_share: float = 0.0
    """Share of replayed unrolls in every training batch, in [0, 1); the rest is fresh. 0 disables the replay."""
    replay_capacity: int = 1000
    """Number of newest unrolls that can be replayed, kept in memory on the CPU; at least the fresh ones of a batch."""

    def __post_init__(self) -> None:
        require(0.0 <= self.replay_share < 1.0, "replay_share", self.replay_share, "must lie in [0, 1)")
        require_at_least(1, self, "replay_capacity")

    def num_replayed(self, batch_size: int) -> int:
        """Returns the replayed unrolls in a training batch: replay_share of it, rounded, but never all."""
        return min(round(self.replay_share * batch_size), batch_size - 1)

    def num_fresh(self, batch_size: int) -> int:
        """Returns the fresh unrolls in a training batch, at least one."""
        return batch_size - self.num_replayed(batch_size)

    def room(self, batch_size: int) -> int:
        """Returns the number of unrolls that are kept, at least the fresh ones of a batch; 0 if none is replayed."""
        return max(self.replay_capacity, self.num_fresh(batch_size)) if self.num_replayed(batch_size) > 0 else 0


_OBJECT = r"[\w.]+:\w+"
_AXES = r"(?=.*h)(?=.*w)(?!.*(.).*\1)[hwck]{2,4}|flat"
"""Both of h and w, with at most one c and one k, or flat."""


def _require_choice(name: str, value: str, choices: tuple[str, ...], own: str) -> None:
    """Raises ConfigError unless `value` is one of `choices` or names a user's object; `own` is the form of its name."""
    known = value in choices or re.fullmatch(_OBJECT, value) is not None
    require(known, name, value, f"must be {', '.join(choices)} or {own}")


def _require_own(name: str, text: str, value: str, owner: str, reason: str) -> None:
    """Raises ConfigError unless `text` is a JSON object, which must be empty if the `value` of `owner` is built in."""
    options = parse_object(name, text)
    require(not options or ":" in value, name, text, f"is for a {owner} of your own, module:Name: {reason}")


def _by_leaf(name: str, entries: Sequence[str], pattern: str, form: str) -> dict[str, str]:
    """Parses the setting `name`, LEAF=value each. Raises ConfigError for an invalid or repeated entry."""
    values: dict[str, str] = {}
    for entry in entries:
        leaf, _, value = entry.rpartition("=")
        well_formed = leaf != "" and re.fullmatch(pattern, value) is not None
        require(well_formed, name, entry, f'must be LEAF={form}; the only leaf is called "."')
        require(leaf not in values, name, entry, f"there is another one for {leaf}")
        values[leaf] = value
    return values
