"""Which of the ranks this process is, as torchrun tells it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kubebeast_common.seeds import derived_seed
from kubebeast_learner.config import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """One process among those that train together; the defaults are one that trains alone."""

    rank: int = 0
    """Among all, from 0."""
    num_ranks: int = 1
    local_rank: int = 0
    """Among those of this machine, or of this pod, from 0: its GPU, and what is added to its ports."""
    num_local_ranks: int = 1

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """The variables of https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables.

        A process without WORLD_SIZE, or with 1, is alone. ConfigError where others are missing or are no numbers.
        """
        if environ.get("WORLD_SIZE", "1") == "1":
            return cls()
        try:
            rank, num_ranks, local_rank, num_local_ranks = (
                int(environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
            )
        except KeyError as error:
            raise ConfigError(
                f"WORLD_SIZE is set and {error.args[0]} is not: start several learners by torchrun"
            ) from None
        except ValueError as error:
            raise ConfigError(f"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE must be numbers: {error}") from None
        return cls(rank=rank, num_ranks=num_ranks, local_rank=local_rank, num_local_ranks=num_local_ranks)

    @property
    def is_first(self) -> bool:
        """Whether it writes what a run leaves on disk."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        return self.num_ranks == 1

    @property
    def is_on_one_machine(self) -> bool:
        """Whether one agent of torchrun, which knows who was asked to stop, has started all ranks."""
        return self.num_local_ranks == self.num_ranks

    def seed(self, run_seed: int) -> int:
        """Of what must differ between ranks: environments, action sampling, replay. The first rank has run_seed."""
        return run_seed if self.is_first else derived_seed(run_seed, self.rank)

    def address(self, address: str) -> str:
        """Where this rank listens when the first of its machine does at `address`: ports count up by local ranks.

        Of a unix socket the path gets the local rank as a suffix. Port 0, the system's choice, and "" stay.
        """
        host, _, port = address.rpartition(":")
        if not address or self.local_rank == 0 or port == "0":
            return address
        return f"{host}:{int(port) + self.local_rank}" if port.isdigit() else f"{address}.{self.local_rank}"


ALONE = Place()
