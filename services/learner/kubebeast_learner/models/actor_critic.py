"""The built-in models: a torso over the observations, a recurrent or empty core, a policy head and a value head."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models.action_mask import ActionMask
from kubebeast_learner.models.base import Model, ModelInputs, ModelOutput
from kubebeast_learner.models.core import Core, CoreState
from kubebeast_learner.models.policy_head import PolicyHead
from kubebeast_learner.models.popart import PopArt
from kubebeast_learner.models.torsos.base import Torso


class ActorCritic(Model):
    """A torso, a core and two heads. Only the torso may run in low precision; the rest computes in float32."""

    def __init__(
        self,
        torso: Torso,
        core: Core,
        distribution: ActionDistribution,
        action_mask: ActionMask,
        *,
        value_torso: Torso | None = None,
        value_core: Core | None = None,
        reward_input: bool = False,
        last_action_input: bool = False,
        task_input: bool = False,
        log_std_init: float = 0.0,
        normalise_values: bool = False,
        num_tasks: int = 1,
    ) -> None:
        """The input of `core` is the torso's features, then the clipped reward, the last action's features and the
        one-hot task, each if enabled. value_torso, value_core: torso and core of the value head, if it has its own.
        """
        super().__init__()
        self.num_tasks = num_tasks
        self.torso = torso
        self.core = core
        self.value_torso = value_torso
        self.value_core = value_core
        value_size = core.output_size if value_core is None else value_core.output_size
        self.policy = PolicyHead(core.output_size, distribution, log_std_init)
        self.baseline = PopArt(value_size, num_tasks) if normalise_values else nn.Linear(value_size, 1)
        self.distribution = distribution
        self._action_mask = action_mask
        self.state_shapes = core.state_shapes if value_core is None else core.state_shapes + value_core.state_shapes
        self._reward_input = reward_input
        self._last_action_input = last_action_input
        self._task_input = task_input

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The convolutions of the torso; None if it has none."""
        return self.torso.low_precision_part

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """See `Model.forward`."""
        observation = self._action_mask.without(self.normalised(inputs)).observation
        num_states = len(self.core.state_shapes)
        features, state = self._run(self.torso, self.core, observation, inputs, core_state[:num_states])
        value_features = features
        if self.value_torso is not None and self.value_core is not None:
            value_state = core_state[num_states:]
            value_features, value_state = self._run(self.value_torso, self.value_core, observation, inputs, value_state)
            state += value_state
        with torch.autocast(features.device.type, enabled=False):
            policy_logits = self._action_mask.apply(self.policy(features), inputs)
            baseline = self._values(value_features, inputs.task)
        return ModelOutput(policy_logits, baseline), state

    @property
    def popart(self) -> PopArt | None:
        """See `Model.popart`."""
        return self.baseline if isinstance(self.baseline, PopArt) else None

    def _run(
        self, torso: Torso, core: Core, observation: Sequence[Tensor], inputs: ModelInputs, core_state: CoreState
    ) -> tuple[Tensor, CoreState]:
        features: Tensor = torso(*observation)
        with torch.autocast(features.device.type, enabled=False):
            parts = [features]
            if self._reward_input:
                parts.append(inputs.reward.clamp(-1, 1).unsqueeze(-1))
            if self._last_action_input:
                parts.append(self.distribution.features(inputs.last_action))
            if self._task_input:
                assert inputs.task is not None, "several tasks, but rows without a task"
                parts.append(F.one_hot(inputs.task, self.num_tasks).float())
            output: tuple[Tensor, CoreState] = core(torch.cat(parts, dim=-1), inputs.is_first, core_state)
            return output

    def _values(self, features: Tensor, task: Tensor | None) -> Tensor:
        if isinstance(self.baseline, PopArt):
            return self.baseline.values(features, task)
        values: Tensor = self.baseline(features)
        return values.squeeze(-1)
