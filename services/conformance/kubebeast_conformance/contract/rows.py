"""The table of rows and the additions of minor versions, parsed from the comments of the .proto file."""

import re
from dataclasses import dataclass
from importlib.resources import files

PROTO = files("kubebeast_protos.v1").joinpath("actor_pool.proto").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a row that an environment may send at a step."""

    episode: str
    """State of the environment before the row: DUE or UNDER_WAY."""
    name: str
    is_first: bool
    terminated: bool
    truncated: bool
    interrupted: bool
    waiting: bool
    rewarded: bool
    """True if the reward may be nonzero."""
    whole_stack: bool
    """True if all frames of a stack are sent, not only the newest."""
    then: str
    """State of the environment after the row: DUE or UNDER_WAY."""
    minor: int
    """Minimum minor version of both sides."""

    @property
    def flags(self) -> tuple[bool, ...]:
        """is_first, terminated, truncated, interrupted and waiting."""
        return self.is_first, self.terminated, self.truncated, self.interrupted, self.waiting

    @property
    def keeps_place(self) -> bool:
        """True if the row has no observation of its own, but zeros."""
        return self.interrupted or self.waiting

    @property
    def has_turn(self) -> bool:
        """True unless the agent waits or is absent."""
        return not (self.waiting or (self.is_first and self.interrupted))


DUE, UNDER_WAY = "due", "under way"
"""States of an environment: the next row begins an episode, or belongs to the current one."""


def _read_rows(text: str) -> list[Row]:
    rows = []
    for line in re.findall(rf"^//   ((?:{DUE}|{UNDER_WAY}) .*)$", text, re.MULTILINE):
        episode, name, *flags, reward, frames, then, minor = (cell.strip() for cell in line.split("|"))
        if reward not in ("0", "finite") or frames not in ("stack", "newest") or then not in (DUE, UNDER_WAY):
            raise ValueError(f"not a row of the contract: {line}")
        is_first, terminated, truncated, interrupted, waiting = (bool(int(flag)) for flag in flags)
        rows.append(
            Row(
                episode=episode,
                name=name,
                is_first=is_first,
                terminated=terminated,
                truncated=truncated,
                interrupted=interrupted,
                waiting=waiting,
                rewarded=reward == "finite",
                whole_stack=frames == "stack",
                then=then,
                minor=int(minor),
            )
        )
    return rows


ROWS = _read_rows(PROTO)


def rows_when(episode: str, minor: int, *, takes_turns: bool = False) -> list[Row]:
    """Returns the rows that an environment in the state `episode`, DUE or UNDER_WAY, may send."""
    rows = [row for row in ROWS if row.episode == episode and row.minor <= minor]
    return rows if takes_turns else [row for row in rows if not row.waiting]


def _read_additions(text: str) -> dict[str, int]:
    lines = re.findall(r"^//   minor ([1-9]\d*): (.*)\.$", text, re.MULTILINE)
    return {name: int(minor) for minor, names in lines for name in names.split(", ")}


ADDITIONS = _read_additions(PROTO)
"""Names added since minor version 0, e.g. "Observations.interrupted", with the version that introduced them."""
