"""Findings of a simulation: work of the devices, waits and copies of the host, and faults."""

import collections
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from torch import Tensor

_SOURCES = ("kubebeast_learner", "/tests/")
_OWN = "/tests/device/simulation/"


@dataclass
class Findings:
    launches: Counter[str] = field(default_factory=collections.Counter)
    """Kernels and starts of graphs by their names, without copies between host and device."""
    waits: Counter[str] = field(default_factory=collections.Counter)
    """Waits of the host for a device, by their reasons and lines."""
    copies: Counter[str] = field(default_factory=collections.Counter)
    """Copies by their directions."""
    copied_bytes: Counter[str] = field(default_factory=collections.Counter)
    faults: list[str] = field(default_factory=list)
    """Races, memory that is freed in use, and copies that the host disturbs."""

    def count_copy(self, direction: str, tensor: Tensor) -> None:
        self.copies[direction] += 1
        self.copied_bytes[direction] += tensor.numel() * tensor.element_size()

    def reset(self) -> None:
        for each in (self.launches, self.waits, self.copies, self.copied_bytes, self.faults):
            each.clear()

    def as_dict(self) -> dict[str, Any]:
        return {
            "launches": dict(self.launches),
            "waits": dict(self.waits),
            "copies": dict(self.copies),
            "copied_bytes": dict(self.copied_bytes),
            "faults": list(dict.fromkeys(self.faults)),
        }


found = Findings()
"""The findings of this process."""
lock = threading.RLock()
"""Guards the state of the simulation."""


def fault(text: str) -> None:
    found.faults.append(f"{text} (at {source_line()})")


def source_line() -> str:
    """Returns the innermost line of the product or of a test."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if any(source in file for source in _SOURCES) and _OWN not in file:
            return f"{file.rpartition('kubebeast_learner/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"
