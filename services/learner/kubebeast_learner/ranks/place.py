"""Place of this process among the ranks, from the variables of torchrun."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kubebeast_common.seeds import derived_seed
from kubebeast_learner.config import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """One process among those that train together; the defaults are a process that trains alone."""

    rank: int = 0
    """Index among all ranks, from 0."""
    num_ranks: int = 1
    local_rank: int = 0
    """Index among the ranks of this machine or pod, from 0; it selects the GPU and is added to ports."""
    num_local_ranks: int = 1

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Reads the variables of https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables.

        A process without WORLD_SIZE, or with 1, is alone. Raises ConfigError if other variables are missing or are no
        numbers.
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
        """True if this rank writes the files of a run."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        return self.num_ranks == 1

    @property
    def is_on_one_machine(self) -> bool:
        """True if one agent of torchrun, which knows of every request to stop, has started all ranks."""
        return self.num_local_ranks == self.num_ranks

    def seed(self, run_seed: int) -> int:
        """Returns a seed for all that must differ between ranks: environments, action sampling, replay.

        That of the first rank is run_seed.
        """
        return run_seed if self.is_first else derived_seed(run_seed, self.rank)

    def address(self, address: str) -> str:
        """Returns the address of this rank, given that of the first rank of its machine: local ranks increase the port.

        The path of a unix socket gets the local rank as a suffix. Port 0, which the system chooses, and "" stay
        unchanged.
        """
        host, _, port = address.rpartition(":")
        if not address or self.local_rank == 0 or port == "0":
            return address
        return f"{host}:{int(port) + self.local_rank}" if port.isdigit() else f"{address}.{self.local_rank}"


ALONE = Place()
