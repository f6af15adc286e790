"""The recipe of a configuration, beside its settings."""

from typing import NamedTuple

KIND = "kind"
"""Choice of the recipe for the kind of the environment, once the training has met it."""


class RecipeChoice(NamedTuple):
    """The recipe of a training, and what the environment still has to decide."""

    name: str = ""
    """Name of the recipe; empty if there is none, or none yet."""
    named: frozenset[str] | None = None
    """If the kind of the environment decides on the recipe, the settings that other sources name; else None."""
    note: str = ""
    """Line for the log of the run: what the environment has decided, and why; empty if nothing."""

    def __str__(self) -> str:
        """The value of --recipe."""
        return KIND if self.is_open else self.name or "none"

    @property
    def is_open(self) -> bool:
        return self.named is not None


NO_RECIPE = RecipeChoice()
