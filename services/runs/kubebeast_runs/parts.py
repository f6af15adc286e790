"""Parts of a run: the files that one process at a time writes, under a lock in a folder or a lease in a bucket."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kubebeast_runs.names import META

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
"""Name of an evaluator: it is part of the names of files and objects, and a label of metrics."""
NAME_RULE = "must have 1 to 63 letters, digits, - and _, and begin with a letter or a digit"
_EVALUATION = re.compile(rf"eval(?:-({_NAME.pattern}))?")


@dataclass(frozen=True, slots=True)
class Part:
    """The files of a training, or those of one evaluator that plays its checkpoints."""

    name: str
    """Folder of its files in a bucket, and name of its manifest there."""
    lock: str
    """Its lock file in the folder of the run."""
    first_file: str
    """File with which it begins."""
    evaluator: str | None = None
    """Name of the evaluator, "" without one; None for the training."""

    def refusal(self, xpid: str, holder: str) -> str:
        """Returns the message for a second process: `holder` writes this part of the run already."""
        if self.evaluator is None:
            return f"xpid = {xpid!r}: {holder} trains this run; stop it or choose another xpid"
        if not self.evaluator:
            return f"xpid = {xpid!r}: {holder} follows this run; stop it, or set a name for this evaluator"
        of_name = f"name = {self.evaluator!r}: {holder} follows the run {xpid!r} by this name"
        return f"{of_name}; stop it or choose another name"


TRAINING = Part("run", ".lock", META)


def evaluation(evaluator: str = "") -> Part:
    """Returns the part of an evaluator, by its name; "" is the one without a name."""
    stem = f"eval-{evaluator}" if evaluator else "eval"
    return Part(stem, f".{stem}.lock", f"{stem}.csv", evaluator)


def evaluators_among(stems: Iterable[str]) -> list[str]:
    """Returns the evaluators whose parts have some of these names, sorted; "" is the one without a name."""
    matches = map(_EVALUATION.fullmatch, stems)
    return sorted(match[1] or "" for match in matches if match)


def is_evaluator(name: str) -> bool:
    """Returns True if an evaluator may have this name."""
    return _NAME.fullmatch(name) is not None
