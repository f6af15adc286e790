"""A version of the policy in the league."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from kubebeast_learner.models import Model

FADE = 0.99
"""Weight of the games before in the score, for each further game."""


@dataclass(eq=False, slots=True)
class Version:
    number: int
    """Updates before it joined."""
    rating: float
    """Elo."""
    weights: Mapping[str, Tensor]
    """State of the model, on the CPU."""
    models: Mapping[torch.device, Model]
    """A model with these weights on each device of the inference."""
    score: float = 0.5
    """Score of the policy against it, from 0 to 1: a moving mean over games."""
    games: dict[str, int] = field(default_factory=lambda: {"won": 0, "drawn": 0, "lost": 0})
    """Games of the policy against it, by their result."""

    def note(self, result: str, score: float) -> None:
        """Counts a game: "won", "drawn" or "lost" by the policy, with its score."""
        self.games[result] += 1
        self.score = FADE * self.score + (1 - FADE) * score

    def state_dict(self) -> dict[str, Any]:
        """Returns tensors and plain values for a checkpoint."""
        return {
            "number": self.number,
            "rating": self.rating,
            "score": self.score,
            "games": dict(self.games),
            "weights": dict(self.weights),
        }
