"""The torso of categories in an observation that also has an image or a user's encoder."""

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.models.torsos.base import Torso

EMBEDDING_SIZE = 32
"""Size of the embedding of one category. Up to this many categories, one-hot is no wider and loses nothing."""


class CategoryTorso(Torso):
    """One-hot up to EMBEDDING_SIZE categories, else a learned embedding, one table for all elements of the leaf."""

    def __init__(self, leaf: LeafSpec) -> None:
        super().__init__()
        self.num_categories = leaf.num_categories
        self.embedding: nn.Embedding | None = None
        if leaf.num_categories > EMBEDDING_SIZE:
            self.embedding = nn.Embedding(leaf.num_categories, EMBEDDING_SIZE)
            nn.init.normal_(self.embedding.weight, std=EMBEDDING_SIZE**-0.5)  # of norm 1, as a one-hot vector
        self.output_size = math.prod(leaf.row_shape) * min(leaf.num_categories, EMBEDDING_SIZE)

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """See `Torso.describe`."""
        return ["one-hot" if self.embedding is None else f"embedded in {EMBEDDING_SIZE} numbers" for _ in observation]

    def forward(self, rows: Tensor) -> Tensor:
        """Maps categories [T, B, *row_shape] to float32 [T, B, output_size]."""
        if self.embedding is None:
            features = F.one_hot(rows.long(), self.num_categories).float()
        else:
            features = self.embedding(rows.long())
        return features.reshape(*rows.shape[:2], self.output_size)
