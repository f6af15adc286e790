"""Some rows of an inference batch, for a model that answers these alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from kubebeast_native import InferenceBatch

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class BatchRows:
    """Rows [n] of an InferenceBatch, with the fields of the same names."""

    observation: list[Array]
    rewards: Array
    last_actions: list[Array]
    is_first: Array
    slots: Array
    task: Array
    unroll_start: Array

    @classmethod
    def of(cls, batch: "InferenceBatch", rows: Array) -> "BatchRows":
        """rows: int64 [n], in order."""
        return cls(
            observation=[leaf[rows] for leaf in batch.observation],
            rewards=batch.rewards[rows],
            last_actions=[leaf[rows] for leaf in batch.last_actions],
            is_first=batch.is_first[rows],
            slots=batch.slots[rows],
            task=batch.task[rows],
            unroll_start=batch.unroll_start[rows],
        )
